//! Tokens from outside: tracking links, return paths, Message-IDs, cursors.

use postroad_mail::{MessageIdKey, OwnMessageId, ReturnPathKey, TrackKey, TrackKind};
use postroad_model::{EventCursor, MessageId, MessageToken, ServerId};

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::Target;

const KEY: [u8; 32] = [7; 32];

pub(super) const TARGET: Target = Target { name: "tokens", run, seeds, frames: &["{}"] };

fn seeds() -> Vec<Vec<u8>> {
    let track = TrackKey::new(&KEY);
    let click = TrackKind::Click { target: "https://example.com/a?b=c".to_owned() };
    let return_path_key = ReturnPathKey::new(&KEY);
    let token = MessageToken::random(&mut StdRng::seed_from_u64(5));
    let own = OwnMessageId { server_id: ServerId(3), number: 4 };
    let uuid = MessageIdKey::new(&KEY).uuid(own).expect("the numbers are small");
    vec![
        format!("{uuid}@rp.example.com").into_bytes(),
        track.token(ServerId(3), MessageId(4), &click).into_bytes(),
        track.token(ServerId(3), MessageId(4), &TrackKind::Open).into_bytes(),
        return_path_key.local_part(ServerId(3), MessageId(4), &token).into_bytes(),
    ]
}

fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let track = TrackKey::new(&KEY);
    if let Some(read) = track.parse(&text) {
        // Only tokens signed with this key are accepted, so signing again gives the same token.
        assert_eq!(track.token(read.server_id, read.message_id, &read.kind), text);
    }
    let _ = ReturnPathKey::new(&KEY).parse(&text);
    let message_ids = MessageIdKey::new(&KEY);
    if let Some(read) = message_ids.parse(&text) {
        let uuid = message_ids.uuid(read).expect("it was made of these numbers").to_string();
        assert!(text.to_ascii_lowercase().starts_with(&uuid));
    }
    let _ = EventCursor::parse(&text);
}
