//! TXT record that announces a policy (RFC 8461 3.1).

const ID_BYTES_MAX: usize = 32;

/// Id of the policy, if there is exactly one record of this version and it is valid.
pub(super) fn id_in(texts: &[Vec<u8>]) -> Option<String> {
    let mut announcements = texts.iter().filter_map(|text| fields_of(text));
    let fields = announcements.next()?;
    if announcements.next().is_some() {
        return None;
    }
    let mut ids = fields.split(';').filter_map(|field| {
        let (key, value) = field.split_once('=')?;
        (key.trim() == "id").then(|| value.trim())
    });
    let id = ids.next()?;
    let is_valid =
        (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_valid.then(|| id.to_owned())
}

/// Fields after the version. Records that begin differently serve other purposes.
fn fields_of(text: &[u8]) -> Option<&str> {
    let rest = str::from_utf8(text).ok()?.strip_prefix("v=STSv1")?.trim_start();
    rest.strip_prefix(';')
}

#[cfg(test)]
mod tests {
    use super::id_in;

    fn id(texts: &[&str]) -> Option<String> {
        id_in(&texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn valid_records_give_the_policy_id() {
        for text in [
            "v=STSv1; id=20160831085700Z;",
            "v=STSv1;id=20160831085700Z",
            "v=STSv1 ; id = 20160831085700Z ; more=of it",
            "v=STSv1; extension=1; id=20160831085700Z",
        ] {
            assert_eq!(id(&[text]).as_deref(), Some("20160831085700Z"), "{text}");
        }
        assert_eq!(id(&["v=spf1 -all", "v=STSv1; id=1;", "v=STSv10; id=2"]).as_deref(), Some("1"));
    }

    #[test]
    fn bad_missing_and_repeated_records_give_no_policy_id() {
        let long = format!("v=STSv1; id={};", "1".repeat(33));
        for texts in [
            &[][..],
            &["v=STSv2; id=1;"],
            &["id=1; v=STSv1;"],
            &["v=STSv1"],
            &["v=STSv1;"],
            &["v=STSv1; id=;"],
            &["v=STSv1; id=not-alphanumeric;"],
            &[long.as_str()],
            &["v=STSv1; id=1;", "v=STSv1; id=1;"],
        ] {
            assert_eq!(id(texts), None, "{texts:?}");
        }
    }
}
