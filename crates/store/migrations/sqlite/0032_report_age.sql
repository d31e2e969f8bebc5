-- Reports of receivers go by their age: the oldest of a domain that has too many, and those of all that are too old.
CREATE INDEX domain_reports_by_domain_age ON domain_reports (domain, received_at);
CREATE INDEX domain_reports_by_age ON domain_reports (received_at);
