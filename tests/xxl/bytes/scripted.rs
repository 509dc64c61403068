//! An executor that answers what it is told to answer, byte by byte, and keeps what it was asked.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    /// Names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

/// What is done with a question.
#[derive(Clone)]
pub(crate) enum Answer {
    /// These bytes under 200, called HTML as Java's executor does.
    Body(String),
    /// These bytes under another status.
    Status(u16, String),
    /// Nothing, for so long as anybody waits.
    Silence,
    /// The connection is closed.
    HangUp,
    /// What another path is answered.
    As(String),
    /// Something is done first, with the question.
    First(Arc<dyn Fn(&Asked) + Send + Sync>, Box<Answer>),
}

impl Answer {
    pub(crate) fn body(text: &str) -> Self {
        Self::Body(text.to_owned())
    }
}

/// Listens until it is dropped.
pub(crate) struct Scripted {
    pub(crate) port: u16,
    room: Arc<Room>,
    task: Option<JoinHandle<()>>,
}

struct Room {
    answers: Mutex<HashMap<String, Answer>>,
    asked: Mutex<Vec<Asked>>,
    is_over: AtomicBool,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.room.is_over.store(true, Ordering::SeqCst);
        // Wakes the one who waits for callers.
        let _woken = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(task) = self.task.take() {
            let _joined = task.join();
        }
    }
}

impl Scripted {
    /// One that takes runs, is busy, and says nothing of logs.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let port = listener.local_addr().expect("address").port();
        let answers = HashMap::from([
            ("/beat".to_owned(), Answer::body(r#"{"code":200,"msg":null}"#)),
            ("/idleBeat".to_owned(), Answer::body(r#"{"code":500,"msg":"job is running."}"#)),
            ("/run".to_owned(), Answer::body(r#"{"code":200,"msg":null}"#)),
            ("/trigger".to_owned(), Answer::body(r#"{"code":200,"msg":"Success","data":null}"#)),
            ("/kill".to_owned(), Answer::body(r#"{"code":200,"msg":null}"#)),
            ("/log".to_owned(), Answer::body(r#"{"code":200,"msg":null,"content":null}"#)),
        ]);
        let (answers, asked) = (Mutex::new(answers), Mutex::default());
        let room = Arc::new(Room { answers, asked, is_over: AtomicBool::new(false) });
        let of_task = room.clone();
        let task = std::thread::spawn(move || of_task.listen(&listener));
        Self { port, room, task: Some(task) }
    }

    /// As it would register.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Answers so from now on.
    pub(crate) fn says(&self, path: &str, answer: Answer) {
        self.room.answers.lock().expect("lock").insert(path.to_owned(), answer);
    }

    /// What was asked under a path, in order.
    pub(crate) fn asked(&self, path: &str) -> Vec<Asked> {
        let asked = self.room.asked.lock().expect("lock");
        asked.iter().filter(|asked| asked.path == path).cloned().collect()
    }
}

impl Room {
    fn listen(self: Arc<Self>, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let room = self.clone();
            // Ends with its caller, or with the process of the test.
            std::thread::spawn(move || room.serve(stream));
        }
    }

    /// What is to be done, when everything before it is done.
    fn answer(&self, asked: &Asked) -> Option<Answer> {
        let of = |path: &str| self.answers.lock().expect("lock").get(path).cloned();
        let mut answer = of(&asked.path)?;
        loop {
            answer = match answer {
                Answer::First(act, then) => {
                    act(asked);
                    *then
                }
                Answer::As(path) => of(&path)?,
                last => return Some(last),
            };
        }
    }

    /// One question; whoever asks again connects again.
    fn serve(&self, mut stream: TcpStream) {
        let Some(asked) = read(&mut stream) else { return };
        self.asked.lock().expect("lock").push(asked.clone());
        let (status, body) = match self.answer(&asked) {
            Some(Answer::Body(body)) => (200, body),
            Some(Answer::Status(status, body)) => (status, body),
            Some(Answer::Silence) => {
                // Until the caller goes.
                let _gone = stream.read(&mut [0; 1]);
                return;
            }
            Some(Answer::HangUp) => return,
            Some(Answer::As(_) | Answer::First(..)) | None => (404, "<html>404</html>".to_owned()),
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: text/html;charset=UTF-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        // Who has gone needs no answer.
        let _gone =
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    }
}

/// One request; none when the caller goes before its end.
fn read(stream: &mut TcpStream) -> Option<Asked> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, &mut bytes)?;
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: HashMap<String, String> = lines.filter_map(header).collect();
    let length = headers.get("content-length").map_or(0, |n| n.parse().expect("a number"));
    while bytes.len() < head + length {
        more(stream, &mut bytes)?;
    }
    let body = String::from_utf8(bytes[head..head + length].to_vec()).expect("UTF-8");
    Some(Asked { path, headers, body })
}

fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut some = [0; 4096];
    let read = stream.read(&mut some).ok()?;
    bytes.extend_from_slice(&some[..read]);
    (read > 0).then_some(())
}
