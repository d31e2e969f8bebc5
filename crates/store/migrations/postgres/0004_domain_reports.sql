-- What receivers report of a domain's mail (DMARC aggregates, TLS reports), made small. `total` and `passed` count
-- messages or sessions; `details` is JSON.
CREATE TABLE domain_reports (
    domain TEXT NOT NULL,
    kind TEXT NOT NULL,
    organisation TEXT NOT NULL,
    report_id TEXT NOT NULL,
    begin_at BIGINT NOT NULL,
    end_at BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    total BIGINT NOT NULL,
    passed BIGINT NOT NULL,
    details TEXT NOT NULL,
    PRIMARY KEY (domain, kind, organisation, report_id)
);
