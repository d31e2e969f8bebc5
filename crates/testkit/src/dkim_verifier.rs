//! Independent verification of DKIM signatures by Debian's python3-dkim.

use std::io::Write;
use std::process::{Command, Stdio};

pub use postroad_test_programs::find_dkim_verifier as find_verifier;

/// Standard input: the message. Arguments: name and text of each TXT record. Prints a verdict for each signature.
const SCRIPT: &str = r#"
import sys, dkim
message = sys.stdin.buffer.read()
records = dict(zip(sys.argv[1::2], sys.argv[2::2]))
find = lambda name, timeout=5: records.get(name.decode().rstrip(".").lower(), "").encode() or None
headers = message.replace(b"\r\n", b"\n").split(b"\n\n", 1)[0].split(b"\n")
count = sum(line.lower().startswith(b"dkim-signature:") for line in headers)
for index in range(count):
    print("good" if dkim.DKIM(message).verify(idx=index, dnsfunc=find) else "bad")
"#;

/// Verifies each signature of the message, from the top, with these TXT records (name, text).
pub fn verify(message: &[u8], records: &[(&str, &str)]) -> Vec<bool> {
    let interpreter = find_verifier().expect("python3-dkim is installed by `cargo xtask test`");
    let mut child = Command::new(interpreter)
        .args(["-c", SCRIPT])
        .args(records.iter().flat_map(|(name, text)| [*name, *text]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the interpreter was just there");
    let mut input = child.stdin.take().expect("standard input is piped");
    input.write_all(message).expect("the verifier reads everything first");
    drop(input);
    let output = child.wait_with_output().expect("our child can be waited for");
    assert!(output.status.success(), "the verifier failed; its own words are above");
    String::from_utf8_lossy(&output.stdout).lines().map(|verdict| verdict == "good").collect()
}
