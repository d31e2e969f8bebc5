-- Links that show the DNS records of a domain to the person who edits its DNS, found by the hash of their secret part.
-- Revoked links are deleted.
CREATE TABLE domain_links (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id BIGINT NOT NULL REFERENCES domains (id),
    token_hash BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX domain_links_by_domain ON domain_links (domain_id, id);
CREATE INDEX domain_links_by_end ON domain_links (expires_at);

-- Message searches that a user saved. `query` is the query string of the page.
CREATE TABLE saved_searches (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES users (id),
    server_id BIGINT NOT NULL REFERENCES servers (id),
    name TEXT NOT NULL,
    query TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (user_id, server_id, query)
);
CREATE INDEX saved_searches_by_server ON saved_searches (server_id, id);
