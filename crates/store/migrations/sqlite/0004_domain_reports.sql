-- Summaries of the reports that receivers send about the mail of a domain (DMARC aggregate reports, TLS reports). `total`
-- and `passed` count messages or sessions; `details` is JSON.
CREATE TABLE domain_reports (
    domain TEXT NOT NULL,
    kind TEXT NOT NULL,
    organisation TEXT NOT NULL,
    report_id TEXT NOT NULL,
    begin_at INTEGER NOT NULL,
    end_at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    total INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    details TEXT NOT NULL,
    PRIMARY KEY (domain, kind, organisation, report_id)
) WITHOUT ROWID;
