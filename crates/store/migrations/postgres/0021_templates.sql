-- Templates of servers. `latest`: the newest version; `published`: the version that mails are rendered from; `previous`: the
-- version that was published before.
CREATE TABLE templates (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    server_id BIGINT NOT NULL REFERENCES servers (id),
    alias TEXT,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    latest BIGINT NOT NULL,
    published BIGINT,
    previous BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX templates_by_server ON templates (server_id, id);
CREATE UNIQUE INDEX templates_by_alias ON templates (server_id, alias);

-- Rows never change, except for `published_at`. `content` is JSON.
CREATE TABLE template_versions (
    server_id BIGINT NOT NULL,
    template_id BIGINT NOT NULL,
    version BIGINT NOT NULL,
    layout_id BIGINT,
    content TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    published_at BIGINT,
    PRIMARY KEY (server_id, template_id, version)
);
CREATE INDEX template_versions_by_layout ON template_versions (server_id, layout_id) WHERE layout_id IS NOT NULL;
