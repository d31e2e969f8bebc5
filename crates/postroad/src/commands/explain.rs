//! `postroad explain reply "550 5.1.1 …"`: shows how delivery classifies a mail server's reply. Needs no running
//! service.

use anyhow::Context;
use postroad_mail::classify::{Phase, Reply, Signal, Verdict, built_in, classify, classify_in};
use serde_json::json;

use crate::terminal::print;

pub(crate) fn reply(text: &str, phase: Option<Phase>, json: bool) -> anyhow::Result<()> {
    let reply = Reply::parse(text).with_context(|| format!("cannot explain {text:?}"))?;
    let verdict = match phase {
        Some(phase) => classify_in(phase, &reply),
        None => classify(&reply),
    };
    print(&if json { machine_readable(&reply, phase, &verdict) } else { readable(&verdict) });
    Ok(())
}

fn machine_readable(reply: &Reply, phase: Option<Phase>, verdict: &Verdict<'_>) -> String {
    json!({
        "code": reply.code(),
        "enhanced_code": reply.enhanced().map(|code| code.to_string()),
        "phase": phase.map(Phase::as_str),
        "class": verdict.class,
        "permanent": verdict.permanent,
        "hard": verdict.hard,
        "throttle": verdict.throttle,
        "signal": verdict.signal.map(Signal::as_str),
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
