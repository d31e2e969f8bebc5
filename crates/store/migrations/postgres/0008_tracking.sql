-- Host names of tracking links are asked for every other second, however many domains there are.
CREATE INDEX domains_by_track_host ON domains (track_host) WHERE track_host IS NOT NULL;
