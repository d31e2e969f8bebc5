//! `postroad explain reply "550 5.1.1 …"`: what delivery would make of a mail server's answer, without a server.

use anyhow::Context;
use postroad_mail::classify::{Reply, Verdict, built_in};
use serde_json::json;

use crate::terminal::print;

pub(crate) fn reply(text: &str, json: bool) -> anyhow::Result<()> {
    let reply = Reply::parse(text).with_context(|| format!("cannot explain {text:?}"))?;
    let verdict = built_in().judge(&reply);
    print(&if json { machine_readable(&reply, &verdict) } else { readable(&verdict) });
    Ok(())
}

fn machine_readable(reply: &Reply, verdict: &Verdict<'_>) -> String {
    json!({
        "code": reply.code(),
        "enhanced_code": reply.enhanced().map(|code| code.to_string()),
        "class": verdict.class,
        "permanent": verdict.permanent,
        "hard": verdict.hard,
        "throttle": verdict.throttle,
        "rule": verdict.rule,
    })
    .to_string()
}

fn readable(verdict: &Verdict<'_>) -> String {
    let message =
        if verdict.permanent { "yes, the message is given up" } else { "no, it is tried again later" };
    let address = if verdict.hard { "yes, the address is dead and will be suppressed" } else { "no" };
    let pace = if verdict.throttle { "yes, this destination is sent to more slowly" } else { "no" };
    format!(
        "class: {}, {}\npermanent: {message}\nhard: {address}\nthrottle: {pace}\nrule: {}",
        verdict.class,
        built_in().meaning(verdict.class),
        verdict.rule
    )
}
