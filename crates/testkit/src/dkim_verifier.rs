//! Independent verification of DKIM signatures by Debian's python3-dkim.

use std::io::Write;
use std::process::{Command, Stdio};

pub use postroad_test_programs::find_dkim_verifier as find_verifier;

/// Standard input: messages, each after its length (4 bytes). Arguments: name and text of each TXT record. Prints a line for
/// each message, with a verdict for each of its signatures.
const SCRIPT: &str = r#"
import sys, dkim
records = dict(zip(sys.argv[1::2], sys.argv[2::2]))
find = lambda name, timeout=5: records.get(name.decode().rstrip(".").lower(), "").encode() or None
while length := sys.stdin.buffer.read(4):
    message = sys.stdin.buffer.read(int.from_bytes(length, "big"))
    headers = message.replace(b"\r\n", b"\n").split(b"\n\n", 1)[0].split(b"\n")
    count = sum(line.lower().startswith(b"dkim-signature:") for line in headers)
    verdicts = [dkim.DKIM(message).verify(idx=index, dnsfunc=find) for index in range(count)]
    print(*("good" if verdict else "bad" for verdict in verdicts))
"#;

/// Verifies each signature of the message, from the top, with these TXT records (name, text).
pub fn verify(message: &[u8], records: &[(&str, &str)]) -> Vec<bool> {
    verify_all(&[message], records).pop().expect("each message has a line")
}

/// Verifies several messages in one process of the verifier.
pub fn verify_all(messages: &[impl AsRef<[u8]>], records: &[(&str, &str)]) -> Vec<Vec<bool>> {
    let interpreter = find_verifier().expect("python3-dkim is installed by `cargo xtask test`");
    let mut child = Command::new(interpreter)
        .args(["-c", SCRIPT])
        .args(records.iter().flat_map(|(name, text)| [*name, *text]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the interpreter was just there");
    let mut input = child.stdin.take().expect("standard input is piped");
    let mut bytes = Vec::new();
    for message in messages {
        let message = message.as_ref();
        let length = u32::try_from(message.len()).expect("messages of tests are small");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(message);
    }
    // On its own thread: the verifier writes before it has read everything.
    let writing = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().expect("our child can be waited for");
    assert!(output.status.success(), "the verifier failed; its output is above");
    writing.join().expect("writing does not panic").expect("the verifier reads everything");
    let verdicts = |line: &str| line.split_whitespace().map(|verdict| verdict == "good").collect();
    String::from_utf8_lossy(&output.stdout).lines().map(verdicts).collect()
}
