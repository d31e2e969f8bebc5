//! Header values that the API accepts and refuses.

use postroad_mail::{
    HeaderProblem, check_content_type, check_header_name, check_header_value, is_valid_date, parse_message_id,
};

#[test]
fn ordinary_names_are_accepted() {
    for name in ["X-Campaign", "List-Unsubscribe", "Message-ID", "x", "X-Postal-Tag", "X_1!", &"x".repeat(76)]
    {
        assert_eq!(check_header_name(name), Ok(()), "{name}");
    }
}

#[test]
fn reserved_names_are_refused_and_named() {
    for name in [
        "Received",
        "received",
        "DKIM-Signature",
        "Return-Path",
        "BCC",
        "X-Postroad-Tag",
        "x-postroad-",
        "Content-Type",
        "content-transfer-encoding",
        "MIME-Version",
    ] {
        let problem = check_header_name(name).unwrap_err();
        assert_eq!(problem, HeaderProblem::NameReserved(name.into()));
        assert!(problem.to_string().contains(name));
    }
}

#[test]
fn invalid_names_are_refused() {
    assert_eq!(check_header_name(""), Err(HeaderProblem::NameEmpty));
    assert_eq!(check_header_name(&"x".repeat(77)), Err(HeaderProblem::NameTooLong));
    for name in ["a b", "a:", "a\r\nb", "ä", "a\0", "a\t"] {
        assert_eq!(check_header_name(name), Err(HeaderProblem::NameSyntax), "{name:?}");
    }
}

#[test]
fn values_have_no_line_breaks_and_no_control_characters() {
    assert_eq!(check_header_value("für\talle", 10), Ok(()));
    assert_eq!(check_header_value("12345", 4), Err(HeaderProblem::ValueTooLong(4)));
    for value in ["a\r\nb", "a\n", "\r"] {
        assert_eq!(check_header_value(value, 10), Err(HeaderProblem::ValueLineBreak), "{value:?}");
    }
    for value in ["a\0", "\u{1b}", "\u{7f}", "\u{85}"] {
        assert_eq!(check_header_value(value, 10), Err(HeaderProblem::ValueControl), "{value:?}");
    }
}

#[test]
fn content_types_name_a_single_part() {
    for good in
        ["text/plain", "application/vnd.ms-excel; a=b", "image/svg+xml;", "message/rfc822", "a/b; c=\"d e\""]
    {
        assert_eq!(check_content_type(good), Ok(()), "{good}");
    }
    assert_eq!(check_content_type("pdf"), Err(HeaderProblem::ContentTypeSyntax));
    assert_eq!(check_content_type("text/plain\r\nX: y"), Err(HeaderProblem::ContentTypeSyntax));
    assert_eq!(check_content_type("Multipart/mixed; boundary=x"), Err(HeaderProblem::ContentTypeMultipart));
    assert_eq!(check_content_type("message/partial"), Err(HeaderProblem::ContentTypeMessage));
    assert_eq!(check_content_type(&format!("a/{}", "b".repeat(600))), Err(HeaderProblem::ContentTypeTooLong));
}

#[test]
fn message_ids_lose_their_brackets() {
    assert_eq!(parse_message_id("<a.b$1@example.com>").as_deref(), Some("a.b$1@example.com"));
    assert_eq!(parse_message_id(" a@b ").as_deref(), Some("a@b"));
    assert_eq!(parse_message_id("<a@[127.0.0.1]>").as_deref(), Some("a@[127.0.0.1]"));
    for bad in
        ["", "<>", "a", "<a@b", "a@b>", "@b", "a@", "a b@c", "a@b@c", "a@b>\r\nX: y", "ä@b", "<a@b> <c@d>"]
    {
        assert_eq!(parse_message_id(bad), None, "{bad:?}");
    }
    assert_eq!(parse_message_id(&format!("{}@b", "a".repeat(897))), None);
    let longest = format!("{}@b", "a".repeat(896));
    assert_eq!(parse_message_id(&format!("<{longest}>")), Some(longest));
}

#[test]
fn dates_are_those_of_rfc_5322() {
    for good in [
        "Sun, 15 Nov 2026 03:00:00 +0000",
        "15 Nov 2026 03:00 -0730",
        "Sun, 1 Nov 2026 03:00:00 GMT",
        "Sun, 15 Nov 2026 03:00:00 +0000 (UTC)",
    ] {
        assert!(is_valid_date(good), "{good}");
    }
    for bad in [
        "",
        "2026-11-15T03:00:00Z",
        "tomorrow",
        "Sun, 32 Nov 2026 03:00:00 +0000",
        "Sun, 15 Nov 2026 25:00:00 +0000",
        "Sun, 15 Nov 2026 03:00:00",
        "Sun, 15 Nov 2026 03:00:00 +0000\r\n X",
    ] {
        assert!(!is_valid_date(bad), "{bad}");
    }
}
