// The words of the page about the API. What routes say of themselves is English, as the API is.

export const en = {
  title: 'API', console: 'Console', filter: 'Find a route', skip: 'Skip to the routes', routes: 'Routes', none: 'No route has these words.',
  lead: 'Everything that the console and the command line do. The description for programs is {file} (OpenAPI 3.1); both are made of the same code as the routes.',
  auth: 'Every request but the public ones says who asks: a token ({header}; make one under your profile, or with {command}), or the session of the console, which sends X-CSRF-Token with every change.',
  errors: 'What is refused is application/problem+json: type for programs, detail says what is wrong and what to do. A GET has an ETag; If-None-Match answers 304. A change that is sent twice with the same Idempotency-Key is done once.',
  needs: 'Needs', public: 'nothing: public', login: 'that you are logged in', somewhere: '{permission}, in the group of what is asked for', everywhere: '{permission}, in all groups',
  place: 'In the path', query: 'In the query', sent: 'What is sent', answered: 'What is answered', example: 'Example', name: 'Name', kind: 'Type', about: 'Meaning', required: 'required',
  one_of: 'one of', list_of: 'list of', map_of: 'map to', anything: 'anything', or: 'or', shape: 'fields', loading: 'Reading the description…', failed: 'The description could not be read: {why}', version: 'Version {version}', language: 'Language', nothing_sent: 'nothing',
};

export const zh = {
  title: '接口', console: '控制台', filter: '查找接口', skip: '跳到接口列表', routes: '接口列表', none: '没有包含这些文字的接口。',
  lead: '控制台和命令行能做的一切。供程序使用的描述是 {file}(OpenAPI 3.1);两者与接口出自同一份代码。',
  auth: '除公开接口外,每个请求都要说明身份:令牌({header};在个人资料中或用 {command} 生成),或控制台会话,会话的每次修改都要带 X-CSRF-Token。',
  errors: '被拒绝的请求返回 application/problem+json:type 供程序判断,detail 说明原因和做法。GET 带 ETag,If-None-Match 相符时返回 304。带同一 Idempotency-Key 发送两次的修改只执行一次。',
  needs: '需要', public: '无:公开', login: '已登录', somewhere: '{permission}(所涉及的作业组)', everywhere: '{permission}(全部作业组)',
  place: '路径参数', query: '查询参数', sent: '请求内容', answered: '返回内容', example: '示例', name: '名称', kind: '类型', about: '含义', required: '必填',
  one_of: '取值', list_of: '列表', map_of: '映射到', anything: '任意', or: '或', shape: '字段', loading: '正在读取接口描述…', failed: '无法读取接口描述:{why}', version: '版本 {version}', language: '语言', nothing_sent: '无',
};
