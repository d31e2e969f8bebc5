-- Tracking host names are read every two seconds, so the query must not depend on the number of domains.
CREATE INDEX domains_by_track_host ON domains (track_host) WHERE track_host IS NOT NULL;
