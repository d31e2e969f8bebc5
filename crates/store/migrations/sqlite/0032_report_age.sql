-- For the removal of reports by age: the oldest ones of a domain that has too many, and all that have expired.
CREATE INDEX domain_reports_by_domain_age ON domain_reports (domain, received_at);
CREATE INDEX domain_reports_by_age ON domain_reports (received_at);
