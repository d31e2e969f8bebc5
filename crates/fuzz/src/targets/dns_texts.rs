//! TXT records that strangers publish: SPF, DKIM and DMARC, through the check of a domain. A line feed begins the next
//! record.

use std::net::Ipv4Addr;
use std::sync::OnceLock;

use postroad_app::domains::check::{
    Answer, DkimRecord, DnsAnswers, ExpectedRecords, RecordData, RecordType, SendingAddress, Service, judge,
    zone_fragment,
};
use postroad_mail::DkimKey;
use postroad_model::DomainName;

use super::{Target, texts};

pub(super) const TARGET: Target = Target {
    name: "dns-texts",
    run,
    seeds: || {
        texts(&[
            "v=spf1 ip4:192.0.2.0/24 include:a.example a:%{d2}/24//64 exists:%{ir}.%{v}.x.example redirect=b.example",
            "v=spf1 mx ptr -all\nv=spf1 +include:a.example ?all exp=e.%{h}.example",
            "v=DKIM1; k=rsa; h=sha256; t=y:s; s=email; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A",
            "v=DMARC1; p=none; sp=reject; np=quarantine; rua=mailto:a@example.com; pct=50",
            "\"v=spf1 -all\"",
        ])
    },
    frames: &[
        "{}",
        "v=spf1 {}",
        "v=spf1 a:{}",
        "v=spf1 -all {}",
        "v=DKIM1; p={}",
        "v=DMARC1; p=none; {}",
        "v=spf1 a\n{}",
    ],
};

fn run(bytes: &[u8]) {
    let records: Vec<RecordData> =
        bytes.split(|byte| *byte == b'\n').map(|text| RecordData::Text(text.to_vec())).collect();
    let mut answers = DnsAnswers::default();
    for name in ["shop.example", "one._domainkey.shop.example", "_dmarc.shop.example", "a.example"] {
        answers.insert(name, RecordType::Txt, Answer::Records(records.clone()));
    }
    let checks = judge(expected(), &answers);
    for check in &checks {
        assert!(check.found.len() <= 5, "{check:?}");
        assert!(check.found.iter().all(|text| !text.contains(char::is_control)), "{check:?}");
    }
    // Whatever the DNS holds, each line is a comment or a record that we ask for.
    let zone = zone_fragment(&checks);
    assert!(
        zone.lines().all(|line| line.starts_with(';') || line.contains("shop.example. 3600 IN ")),
        "{zone}"
    );
}

fn expected() -> &'static ExpectedRecords {
    static EXPECTED: OnceLock<ExpectedRecords> = OnceLock::new();
    EXPECTED.get_or_init(|| {
        let name = |text: &str| DomainName::parse(text).expect("the constant is a domain name");
        let source =
            SendingAddress { address: Ipv4Addr::new(192, 0, 2, 10).into(), helo: name("post.example") };
        let service = Service {
            host: name("post.example"),
            sources: vec![source],
            private_sources: Vec::new(),
            unknown_reason: None,
            is_spf_name_usable: true,
            takes_reports: true,
        };
        let key = DkimKey::generate_ed25519().expect("keys can be generated");
        let public_spki_der = key.public_spki_der().to_vec();
        let key = DkimRecord { selector: "one".to_owned(), public_spki_der, required: true };
        ExpectedRecords::of(&name("shop.example"), &service, &[key])
    })
}
