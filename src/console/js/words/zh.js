// 中文。键与 en.js 相同,由 tests/console 检查。

export default {
  // 通用
  'common.actions': '操作', 'common.again': '重试', 'common.all': '全部', 'common.and_n_more': '另有 {n} 个', 'common.cancel': '取消', 'common.choose': '请选择…', 'common.clear': '清除筛选',
  'common.close': '关闭', 'common.copied': '已复制', 'common.copy': '复制', 'common.copy_failed': '浏览器不允许复制，请手动选中文字复制', 'common.delete': '删除', 'common.done': '已完成', 'common.export': '导出', 'common.filter': '筛选',
  'common.first_n': '前 {n} 条', 'common.n_items': '共 {n} 条', 'common.from': '起', 'common.loading': '加载中…', 'common.more': '显示更多', 'common.more_actions': '更多操作', 'common.no': '否', 'common.nothing': '暂无数据',
  'common.nothing_fits': '没有符合筛选条件的记录', 'common.save': '保存', 'common.saved': '已保存', 'common.select_all': '全选', 'common.select_row': '选择 {name}', 'common.status': '状态', 'common.table': '表格', 'common.to': '止', 'common.when': '时间', 'common.yes': '是',

  // 状态
  'status.PENDING': '等待中', 'status.HELD': '已挂起', 'status.QUEUED': '排队中', 'status.RUNNING': '运行中', 'status.RETRY_WAIT': '等待重试', 'status.KILLING': '终止中', 'status.SUCCESS': '成功', 'status.WARNING': '警告', 'status.FAILED': '失败', 'status.TIMEOUT': '超时',
  'status.KILLED': '已终止', 'status.SKIPPED': '已跳过', 'status.SKIPPED_BRANCH': '分支未选中', 'status.UPSTREAM_FAILED': '上游失败', 'status.FORCED': '强制成功', 'status.UNKNOWN': '结果未知', 'status.PAUSED': '已暂停', 'status.all': '全部状态', 'status.bad': '所有异常状态',
  'mode.ICE': '冻结', 'mode.NOEXEC': '空跑', 'mode.NOWAIT': '忽略依赖',

  // 权限与角色
  'permission.view': '查看', 'permission.run': '运行', 'permission.force': '强制', 'permission.edit': '编辑', 'permission.script': '脚本', 'permission.admin': '管理',
  'permission.view_what': '查看定义、批次和日志', 'permission.run_what': '创建批次、暂停、挂起、终止、重跑', 'permission.force_what': '强制成功、跳过、冻结、空跑', 'permission.edit_what': '修改定义和调度', 'permission.script_what': '修改 SQL、脚本和调用', 'permission.admin_what': '用户、密钥、节点、历史数据清理',
  'role.viewer': '只读', 'role.operator': '运维', 'role.author': '开发', 'role.admin': '管理员', 'role.viewer_what': '查看', 'role.operator_what': '查看与运行', 'role.author_what': '查看与编辑', 'role.admin_what': '除脚本外全部权限',
  'may.title': '没有权限', 'may.not': '需要“{permission}”权限，请联系管理员授权。', 'may.not_in_group': '需要作业组 {group} 的“{permission}”权限，请联系管理员授权。', 'may.not_everywhere': '需要全部作业组的“{permission}”权限，请联系管理员授权。',

  // 错误
  'problem.title': '操作未成功', 'problem.gone_title': '未找到', 'problem.no_page': '页面不存在。请使用菜单或搜索框。', 'problem.unreachable': '无法连接服务器，页面数据可能不是最新；正在自动重连。', 'problem.http': '服务器返回状态码 {status}。',
  'problem.not-logged-in': '登录已失效，请重新登录。', 'problem.forbidden': '需要“{permission}”权限，请联系管理员授权。', 'problem.moved': '批次状态已发生变化，本次未作任何修改。', 'problem.try-again': '数据库暂时没有响应，请几秒后重试。', 'problem.slow-down': '尝试次数过多，请等待 {seconds} 秒后重试。',
  'problem.wrong-login': '用户名或密码错误。', 'problem.changed-meanwhile': '内容已被他人修改，请查看最新状态后重试。', 'problem.not-meant': '页面早于当前会话，请刷新后重试。',

  'problem.unfit': '密码过于简单。', 'problem.not-yours-to-give': '您不能授予该权限。', 'problem.taken': '该名称已被使用。', 'problem.last-admin': '这是最后一个管理员，请先添加另一个管理员。', 'problem.no-setup': '初始化密钥错误或已过期。执行“procession user setup-secret”可重新生成。', 'problem.set-up': '已存在管理员，请登录。',

  // 框架
  'shell.skip': '跳到正文', 'shell.messages': '消息', 'shell.live': '实时', 'shell.not_live': '实时中断', 'shell.crumbs': '当前位置', 'shell.api': 'API 文档',
  'nav.label': '主菜单', 'nav.toggle': '菜单', 'nav.operate': '运行', 'nav.define': '定义', 'nav.watch': '监控与管理', 'nav.dashboard': '运行概览', 'nav.batches': '批次', 'nav.calendar': '日历视图', 'nav.backfills': '补跑', 'nav.groups': '作业组', 'nav.jobs': '作业', 'nav.schedules': '调度', 'nav.calendars': '工作日历',
  'nav.definition': '定义文件', 'nav.nodes': '节点', 'nav.executors': '执行器', 'nav.outbox': '通知', 'nav.audit': '审计', 'nav.users': '用户', 'nav.settings': '系统设置', 'nav.profile': '个人设置', 'nav.failures': '今日失败 {n} 个',
  'search.label': '搜索作业、作业组、批次、调度', 'search.placeholder': '搜索', 'search.found': '搜索结果', 'search.nothing': '没有找到“{q}”',
  'keys.title': '键盘快捷键', 'keys.search': '搜索', 'keys.help': '显示本列表', 'keys.theme': '切换主题', 'keys.rail': '收起或展开菜单', 'keys.rows': '在表格行间移动', 'keys.open': '打开当前行', 'keys.select': '选中当前行', 'keys.close': '关闭',
  'prefs.title': '偏好设置', 'prefs.language': '语言', 'prefs.theme': '主题', 'prefs.theme_auto': '跟随系统', 'prefs.theme_light': '浅色', 'prefs.theme_dark': '深色', 'prefs.theme_is': '主题：{theme}', 'prefs.as_browser': '跟随浏览器', 'prefs.zone': '时区',

  // 登录
  'login.title': '登录', 'login.name': '用户名', 'login.password': '密码', 'login.in': '登录', 'login.out': '退出登录', 'login.or': '或', 'login.oidc': '使用 {name} 登录', 'login.oidc_refused': '{name} 拒绝登录，或系统中没有对应账号，请联系管理员。', 'login.oidc_unreachable': '无法连接 {name}，请使用密码登录或稍后重试。', 'login.expired': '会话已过期，请重新登录后继续。', 'login.version': '版本',
  'setup.title': '创建首个管理员', 'setup.lead': '系统中还没有账号。“procession serve”启动时输出过一次初始化密钥，请在下方填写。', 'setup.secret': '初始化密钥', 'setup.secret_hint': '见服务器的输出或日志', 'setup.go': '创建账号',
  'password.title': '密码', 'password.old': '当前密码', 'password.new': '新密码', 'password.again': '再次输入', 'password.hint': '至少 8 个字符，建议 15 个以上，可以是一句话。', 'password.short': '不足 8 个字符。', 'password.differ': '两次输入不一致。', 'password.change': '修改密码', 'password.changed': '密码已修改，其他会话已全部退出。', 'password.must': '请设置密码', 'password.must_lead': '当前密码仅限本次登录使用。',

  // 概览
  'dash.now': '当前', 'dash.failures': '失败', 'dash.late': '延迟', 'dash.running': '运行中', 'dash.done_today': '今日完成', 'dash.coming': '即将触发', 'dash.needs': '待处理', 'dash.calm': '没有失败，也没有延迟。', 'dash.in_batches': '涉及 {n} 个批次', 'dash.look': '查看',
  'dash.none_running': '没有运行中的批次', 'dash.today': '今日批次', 'dash.none_today': '今日尚未创建批次', 'dash.next': '即将触发的调度', 'dash.none_next': '没有待触发的调度', 'dash.days': '最近 30 天', 'dash.no_days': '这段时间没有批次运行', 'dash.days_label': '最近 {n} 天的批次，其中 {failed} 天有失败', 'dash.day_words': '成功 {success}，失败 {failed}，运行中 {running}', 'dash.failed_now': '{what} 失败',
  'due.due': '要求完成', 'due.late': '延迟', 'due.by': '超出 {span}', 'due.was_due': '应于 {at} 完成', 'due.whole_batch': '整个批次', 'due.start_by': '最晚开始',

  // 批次
  'batches.all': '全部批次', 'batches.find': '批次号或作业组', 'batches.none': '还没有批次', 'batches.none_lead': '可在此创建，或由调度自动创建。',
  'batch.one': '批次', 'batch.no': '批次号', 'batch.open': '创建批次', 'batch.views': '视图', 'batch.progress': '进度', 'batch.done_of': '已完成 {done}/{total}', 'batch.began': '开始时间', 'batch.ended': '结束时间', 'batch.ended_or': '结束，或预计/要求完成', 'batch.expected': '预计完成', 'batch.expected_due': '预计/要求完成', 'batch.p95_hint': '二十次中有十九次不晚于此', 'batch.took': '耗时', 'batch.runs_since': '已运行',
  'batch.business_date': '业务日期', 'batch.started_by': '创建人', 'batch.params': '参数', 'batch.removing': '清理中', 'batch.removing_why': '该批次正在被清理', 'batch.is_now': '批次 {batch}：{status}',
  'batch.failed_n': '{n} 个作业异常结束。', 'batch.blocked_n': '下游 {n} 个作业无法运行。', 'batch.paused_note': '已暂停：在继续之前不再启动新作业，运行中的作业会运行至结束。', 'batch.nobody': '没有存活的进程持有该批次。任一服务进程会自动接管，也可手工继续：',
  'batch.pause': '暂停', 'batch.pause_title': '暂停 {batch}', 'batch.pause_lead': '不再启动新作业，运行中的作业会运行至结束。之后可“继续”。', 'batch.pause_done': '已暂停', 'batch.resume': '继续', 'batch.resume_title': '继续 {batch}', 'batch.resume_lead': '就绪的作业重新开始启动。', 'batch.resume_done': '已继续',
  'batch.kill': '终止批次', 'batch.kill_title': '终止 {batch}', 'batch.kill_lead': '将在服务器上终止运行中的 {running} 个作业，取消等待中的 {waiting} 个作业。批次状态变为“已终止”。', 'batch.kill_done': '正在终止',
  'batch.compare_with': '与其他批次对比', 'batch.audit': '审计记录', 'batch.as_json': '导出 JSON', 'batch.jobs_of': '批次 {batch} 的作业', 'batch.tab_dag': 'DAG 图', 'batch.tab_list': '列表', 'batch.tab_grid': '网格', 'batch.tab_gantt': '甘特图', 'batch.tab_compare': '对比', 'batch.tab_changes': '状态变更',
  'changes.none': '还没有状态变更', 'changes.definition': '创建批次之后定义已变更', 'changes.definition_lead': '该批次使用创建时的定义。如需使用最新定义，请在重跑时选择。',
  'open.lead': '创建批次后由服务节点自动执行。写入之前先显示执行计划。', 'open.no_hint': '202407、2024Q3、任意文本，或表达式如 month(-1)', 'open.day_hint': '不填则为该期间的最后一天', 'open.params_hint': '每行一个 name=value,优先于其他层级的参数', 'open.no_group': '请选择作业组。', 'open.no_number': '请填写批次号。', 'open.planning': '正在生成执行计划…', 'open.takes': '约 {span}', 'open.ends': '预计 {at} 完成', 'open.done': '{batch} 已创建',

  // 作业
  'job.one': '作业', 'job.n': '{n} 个作业', 'job.n_of': '{n}/{all} 个作业', 'job.none': '该作业组没有作业', 'job.name': '名称', 'job.type': '类型', 'job.source': '数据源', 'job.depends_on': '依赖', 'job.mode': '运行模式', 'job.tag': '标签', 'job.all_tags': '全部标签', 'job.find': '作业、名称或错误信息', 'job.began': '开始时间', 'job.ended': '结束时间', 'job.took': '耗时', 'job.usually': '通常耗时',
  'job.starts': '启动次数', 'job.start_no': '第几次启动', 'job.failed_tries': '失败次数', 'job.not_before': '最早开始', 'job.priority': '优先级', 'job.node': '节点', 'job.result': '结果', 'job.message': '消息', 'job.error': '错误信息', 'job.critical': '关键路径', 'job.critical_hint': '位于关键路径：该作业延迟则批次延迟', 'job.expected_start': '预计', 'job.rows_changed': '影响 {n} 行', 'job.is_now': '{job}:{status}',
  'panel.views': '作业详情', 'panel.now': '当前', 'panel.log': '日志', 'panel.data': '数据', 'panel.tries': '执行记录', 'panel.definition': '定义', 'panel.why': '未运行的原因', 'panel.what_now': '当前情况', 'panel.on_server': '数据库服务器上正在执行', 'panel.facts': '基本信息', 'panel.log_tail': '日志末尾', 'panel.log_all': '查看完整日志',
  'panel.parameters': '参数', 'panel.no_parameters': '没有参数', 'panel.outputs': '输出', 'panel.no_outputs': '没有输出', 'panel.checks': '成功规则与数据检查', 'panel.result_set': '结果集 {n}', 'panel.rows': '{n} 行', 'panel.warnings': '数据库警告', 'panel.no_tries': '尚未启动', 'panel.to_job': '打开作业', 'panel.definition_lead': '该批次使用的定义，可能与最新定义不同。', 'panel.body': '执行内容', 'panel.no_definition': '未提供',
  'panel.below': '等待它的作业', 'panel.below_n': '下游有 {n} 个作业尚未结束。', 'panel.lock': '会话锁', 'panel.waits_on': '正在等待', 'panel.parents': '依赖', 'panel.children': '下游', 'panel.steps': '全部状态变更', 'job.given_only': '已分配，尚未领取', 'versions.no': '版本', 'group.active_jobs': '启用的作业', 'due.will_be_late': '预计延迟',
  'param.name': '名称', 'param.value': '值', 'param.layer': '来源',
  'due.at_risk': '有延迟风险', 'due.is_due': '应于 {at} 完成', 'due.expected': '预计 {at} 完成', 'param.out': '输出参数', 'changes.by': '操作人', 'changes.acts': '人工操作',
  'log.follow': '跟随滚动', 'log.find': '在日志中查找', 'log.download': '下载', 'log.n': '{n} 行', 'log.last_n': '最后 {n} 行，共 {all} 行', 'log.none': '没有输出', 'log.none_yet': '暂无输出', 'log.not_started': '尚未启动', 'log.attempt': '第 {n} 次启动 – {status}', 'log.attempt_n': '第 {n} 次启动',

  // 操作
  'action.rerun-from-failure': '从失败处重跑', 'action.rerun': '重跑', 'action.hold': '挂起', 'action.release': '释放', 'action.start-now': '立即启动', 'action.priority': '优先级', 'action.skip': '跳过', 'action.force-success': '强制成功', 'action.force-failure': '强制失败', 'action.ice': '冻结', 'action.thaw': '解冻', 'action.no-exec': '空跑', 'action.normal': '恢复正常', 'action.kill': '终止',
  'action.rerun-from-failure_what': '重跑失败的作业，以及其下游所有尚未成功的作业。', 'action.rerun_what': '重新运行作业。失败次数从 0 重新计算，日志保留之前的执行记录。', 'action.hold_what': '暂不启动等待中的作业，直到释放。有挂起的作业时批次不会结束。', 'action.release_what': '放行已挂起的作业。', 'action.start-now_what': '不再等待计划时间或重试间隔。', 'action.priority_what': '资源不足时优先级高的先运行。',
  'action.skip_what': '跳过该作业，下游继续运行。按带警告的成功计。', 'action.force-success_what': '将作业声明为已完成，批次自动继续。请确认其结果确已生效。', 'action.force-failure_what': '将作业声明为失败，其下游不再运行。', 'action.ice_what': '视为不存在：下游不等待它，规则也不计入它。', 'action.thaw_what': '解除冻结。', 'action.no-exec_what': '轮到时直接视为完成，不执行作业内容。', 'action.normal_what': '取消冻结和空跑。', 'action.kill_what': '在服务器上终止运行中的作业，取消等待中的作业。不会自动重试。',
  'act.title': '{action}:{batch}', 'act.reason': '原因', 'act.reason_hint': '随作业和审计日志保存，供他人查阅。', 'act.reason_missing': '请填写原因。', 'act.bulk': '批量操作筛选结果', 'act.on_filtered': '{action} – 全部筛选结果', 'act.n_chosen': '已选 {n} 个作业', 'act.choose_none': '取消选择',
  'act.scope': '范围', 'act.scope_alone': '仅所选作业', 'act.scope_downstream': '包括全部下游', 'act.scope_upstream': '包括全部上游', 'act.latest': '使用最新定义', 'act.latest_hint': '否则使用创建批次时的定义', 'act.rerun_unknown': '包括结果未知的作业', 'act.rerun_unknown_hint': '请先核对数据：其结果可能已生效', 'act.priority_to': '优先级', 'act.priority_hint': '默认为 0', 'act.ignore_dependencies': '同时忽略依赖', 'act.ignore_dependencies_hint': '需要“强制”权限',
  'act.looking': '正在计算将发生的变更…', 'act.will_change': '将变更 {n} 行：', 'act.asked_follow': '操作指定 {asked} 行，随之改变 {follow} 行', 'act.nothing': '没有任何变更。', 'act.moved': '批次状态已发生变化，本次未作任何修改。以下是现在将发生的变更，请再次确认。', 'act.reopens': '该批次已结束，此操作会重新打开批次，由服务节点继续执行。', 'act.definition_changes': '将采用定义的 {n} 处变更',
  'act.lines': '将发生的变更', 'act.now': '现在', 'act.then': '之后', 'act.because': '缘由', 'act.asked': '操作指定', 'act.follows': '随之改变', 'act.do_n': '{action}：{n} 行', 'act.done_n': '{action}：已变更 {n} 行', 'act.not_in_state': '不适用于“{status}”的作业', 'act.not_iced': '该作业未冻结', 'act.no_mode': '该作业既未冻结也非空跑',

  // 作业组
  'group.one': '作业组', 'group.all': '全部作业组', 'group.everywhere': '全部作业组', 'group.type': '类型', 'group.last': '最近批次', 'group.calendar': '工作日历', 'group.owner': '负责人', 'group.take': '更多', 'group.export': '导出 YAML', 'group.backfill': '补跑', 'group.edit': '以文件编辑', 'group.tab_batches': '批次', 'group.tab_grid': '网格', 'group.tab_dag': 'DAG 图', 'group.tab_jobs': '作业', 'group.tab_versions': '版本', 'group.tab_about': '属性',
  'groups.find': '作业组、名称或负责人', 'groups.lead': '流水线：一组共同运行的作业，每个批次号运行一次。', 'groups.none': '还没有作业组', 'groups.none_lead': '请在“定义文件”中导入，或执行“procession apply FILE”。',

  // 节点与数据源
  'nodes.lead': '共用该数据库的所有服务进程及其负载。', 'nodes.name': '节点', 'nodes.running': '运行中', 'nodes.roles': '角色与标签', 'nodes.where': '主机与进程', 'nodes.heard': '最近心跳', 'nodes.lease': '租约剩余', 'nodes.skew': '时钟偏差', 'nodes.none': '没有存活的进程', 'nodes.none_lead': '启动服务进程之前，作业不会运行，调度不会触发：procession serve', 'nodes.same_name': '有多个存活节点同名：{names}。可正常工作，但建议分别命名。', 'nodes.gone': '该节点已不存活',
  'nodes.drain': '排空', 'nodes.drain_title': '排空 {name}', 'nodes.drain_lead': '不再接受新的批次和作业，已有的继续运行。', 'nodes.undrain': '恢复接单', 'nodes.undrain_title': '恢复 {name}', 'nodes.undrain_lead': '重新接受批次和作业。', 'nodes.state_live': '存活', 'nodes.state_lives': '存活', 'nodes.state_alive': '存活', 'nodes.state_draining': '排空中', 'nodes.state_leaving': '退出中', 'nodes.state_lost': '失联', 'nodes.state_ended': '已结束', 'nodes.state_dead': '已失效',
  'sources.title': '数据源', 'sources.name': '数据源', 'sources.address': '地址', 'sources.max': '最大并发', 'sources.none': '没有数据源', 'sources.check': '检查连接', 'sources.ok': '{name} 连接正常',

  // 执行器
  'executors.lead': '注册到本系统、由 HANDLER 和 GLUE 类型作业调用的 XXL-JOB 执行器。', 'executors.add': '新增执行器', 'executors.add_lead': '执行器以此 AppName 和令牌注册。', 'executors.none': '没有执行器', 'executors.none_lead': '新增执行器后，将令牌配置到执行器：xxl.job.accessToken', 'executors.app_name': 'AppName', 'executors.app_name_hint': 'xxl.job.executor.appname：4 至 64 个字母、数字或 - _ .', 'executors.name_missing': '请填写 AppName。', 'executors.title': '名称', 'executors.title_hint': '显示名称', 'executors.there': '在线情况', 'executors.there_n': '{n} 个在线', 'executors.fixed_n': '{n} 个手动地址', 'executors.nobody': '无在线机器',
  'executors.addresses': '机器地址', 'executors.address': '地址', 'executors.open_runs': '未结束的运行', 'executors.glue': '脚本', 'executors.glue_yes': '允许', 'executors.glue_no': '不允许', 'executors.fixed': '手动录入地址', 'executors.fixed_hint': '每行一个。留空则由执行器自动注册。', 'executors.allow_glue': '允许下发脚本（GLUE）', 'executors.allow_glue_hint': '执行器将以自身用户身份执行收到的任何脚本', 'executors.token': '令牌', 'executors.token_hint': '16 至 200 个可见 ASCII 字符。留空则自动生成，仅显示一次。', 'executors.secret_title': '{name} 的令牌', 'executors.secret_lead': '执行器的 xxl.job.accessToken，仅显示这一次。', 'executors.renew': '更换令牌', 'executors.renew_title': '更换 {name} 的令牌', 'executors.renew_lead': '旧令牌立即失效，请将新令牌配置到各执行器。', 'executors.delete_title': '删除 {name}', 'executors.delete_lead': '不再接受其执行器的注册和回调。历史运行随批次保留。',
  'executors.settings': '配置', 'executors.how': '执行器接入', 'executors.how_lead': '在各执行器的配置中：', 'executors.since': '添加时间', 'executors.changed': '修改时间', 'executors.refused': '被拒绝的请求', 'executors.alive': '在线', 'executors.gone': '离线', 'executors.there_since': '上线时间', 'executors.seen': '最近心跳', 'executors.speaks': 'XXL-JOB 版本', 'executors.registered_none': '尚无执行器注册', 'executors.fixed_none': '使用手动录入地址，尚无执行器注册', 'executors.runs': '最近的运行', 'executors.runs_none': '尚无运行', 'executors.run': '运行', 'executors.what': 'JobHandler', 'executors.said': '执行器返回',
  'executors.run_WAITING': '等待中', 'executors.run_ASKED': '下发中', 'executors.run_RUNNING': '运行中', 'executors.run_TOLD': '已结束', 'executors.run_DONE': '已结束', 'executors.run_UNCONFIRMED': '终止未确认', 'executors.end_OK': '成功', 'executors.end_FAILED': '失败', 'executors.end_KILLED': '已终止', 'executors.end_TIMED_OUT': '超时', 'executors.end_COVERED': '被后续运行覆盖', 'executors.end_NOT_REACHED': '无法连接', 'executors.end_REFUSED': '被执行器拒绝', 'executors.end_DISCARDED': '已丢弃', 'executors.end_LOST': '结果丢失', 'executors.end_UNCONFIRMED': '终止未确认',

  // 通知
  'outbox.lead': '已发送、待发送和放弃发送的通知。', 'outbox.pending': '待发送', 'outbox.sent': '已发送', 'outbox.failed': '已放弃', 'outbox.digest': '已汇总', 'outbox.acked': '已确认', 'outbox.event': '事件', 'outbox.to': '收件人', 'outbox.subject': '主题', 'outbox.next': '原因或下次时间', 'outbox.sent_at': '发送时间', 'outbox.tries': '失败次数', 'outbox.none': '还没有通知', 'outbox.find': '收件人', 'outbox.n_chosen': '已选 {n} 条通知',
  'outbox.resend': '重新发送', 'outbox.resend_title': '重新发送 {n} 条通知', 'outbox.resend_lead': '使用相同的 Message-ID 发送。', 'outbox.resend_not': '该通知正在等待发送', 'outbox.ack': '确认', 'outbox.ack_title': '确认 {n} 条通知', 'outbox.ack_lead': '表示已有人知悉，不再发送。', 'outbox.ack_not': '已处理', 'outbox.test': '发送测试', 'outbox.test_hint': '邮箱地址或 channel:名称；不填则为全部已配置的通道', 'outbox.test_done': '已发送至 {to}',
  'snooze.title': '暂缓通知', 'snooze.new': '暂缓通知', 'snooze.lead': '暂缓期间不发送也不丢失；到期后发送，已确认的除外。', 'snooze.for': '时长', 'snooze.job_hint': '不填则为整个作业组', 'snooze.until': '到期时间', 'snooze.wake': '恢复发送', 'snooze.wake_title': '结束暂缓', 'snooze.wake_lead': '暂缓的通知将立即发送。',
  'event.failed': '失败', 'event.timeout': '超时', 'event.unknown': '结果未知', 'event.parked': '已搁置', 'event.retried': '已重试', 'event.recovered': '已恢复', 'event.batch_done': '批次完成', 'event.batch_warned': '批次完成（有警告）', 'event.batch_failed': '批次失败', 'event.batch_recovered': '批次已恢复', 'event.late_start': '开始延迟', 'event.late_finish': '完成延迟', 'event.will_be_late': '预计延迟', 'event.running_long': '运行过久', 'event.held_long': '挂起过久', 'event.batch_long': '批次运行过久', 'event.batch_timeout': '批次超时',
  'event.misfire': '错过触发', 'event.firing_failed': '触发失败', 'event.firing_skipped': '触发被跳过', 'event.node_lost': '节点失联', 'event.kill_unconfirmed': '终止未确认', 'event.tx_breach': '自行结束事务', 'event.checks_warned': '检查警告', 'event.schedule_ended': '调度已结束', 'event.calendar_ends': '日历即将到期', 'event.test': '测试', 'event.digest': '汇总',

  // 审计
  'audit.lead': '何人、何时、从何处、做了什么、为什么。只增不改。', 'audit.actor': '操作人', 'audit.from': '来源', 'audit.action': '操作', 'audit.on': '对象', 'audit.change': '变化', 'audit.none': '还没有操作记录',

  // 用户
  'users.lead': '用户及其在各作业组的权限。', 'users.add': '新增用户', 'users.add_lead': '将显示一次性密码，仅显示一次；用户首次登录后须自行设置密码。', 'users.none': '没有用户', 'user.name': '用户名', 'user.name_hint': '登录时输入', 'user.name_missing': '请填写用户名。', 'user.display_name': '显示名称', 'user.grants': '授权', 'user.no_grants': '无', 'user.grants_lead': '在作业组中的角色及附加权限。编辑与强制可分属两人。', 'user.grant_add': '添加授权', 'user.grant_remove': '移除', 'user.role': '角色', 'user.origin': '账号类型', 'user.local': '密码', 'user.last_login': '最近登录', 'user.active': '启用', 'user.inactive': '停用',
  'user.is_active': '允许登录', 'user.is_active_hint': '停用后会话和令牌立即失效', 'user.account': '账号', 'user.about': '账号信息', 'user.created': '创建时间', 'user.must_change': '须设置密码', 'user.audit': '该用户的操作记录', 'user.reset': '重置密码', 'user.reset_lead': '{name} 将获得一次性密码，所有会话立即退出。', 'user.end_sessions': '结束会话', 'user.sessions_ended': '会话已全部结束', 'user.delete_title': '删除 {name}', 'user.delete_lead': '会话和令牌立即失效。其操作仍保留在审计日志中。', 'user.not_yourself': '不能对自己操作', 'user.secret_title': '{name} 的密码', 'user.secret_lead': '仅显示这一次，系统不保存明文。请通过安全方式转交。', 'user.secret_kept': '我已保存',
  'session.title': '会话', 'session.began': '开始时间', 'session.seen': '最近活动', 'session.agent': '浏览器', 'session.this': '当前会话', 'session.end': '结束', 'session.end_this': '请使用“退出登录”',
  'token.title': '令牌', 'token.new': '新建令牌', 'token.lead': '供脚本使用：Authorization: Bearer … 权限不会超过您本人。', 'token.name': '名称', 'token.name_hint': '用途', 'token.name_missing': '请填写用途。', 'token.days': '有效天数', 'token.permissions': '权限', 'token.everywhere': '全部作业组', 'token.expires': '到期时间', 'token.used': '最近使用', 'token.none': '没有令牌', 'token.make': '创建', 'token.made': '令牌', 'token.made_lead': '仅显示这一次，系统不保存明文。', 'token.revoke': '吊销', 'token.revoked': '已吊销',

  // 系统设置
  'settings.lead': '该进程当前使用的设置。请在 procession.toml 或环境变量中修改并重启；密钥不显示。', 'settings.find': '查找设置', 'settings.key': '设置项', 'settings.from': '来源',
};
