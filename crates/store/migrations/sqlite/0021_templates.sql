-- Templates of servers. `latest`: the newest version; `published`: the version that mails are rendered from; `previous`: the
-- version that was published before.
CREATE TABLE templates (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server_id INTEGER NOT NULL REFERENCES servers (id),
    alias TEXT,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    latest INTEGER NOT NULL,
    published INTEGER,
    previous INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX templates_by_server ON templates (server_id, id);
CREATE UNIQUE INDEX templates_by_alias ON templates (server_id, alias);

-- Rows never change, except for `published_at`. `content` is JSON.
CREATE TABLE template_versions (
    server_id INTEGER NOT NULL,
    template_id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    layout_id INTEGER,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    published_at INTEGER,
    PRIMARY KEY (server_id, template_id, version)
);
CREATE INDEX template_versions_by_layout ON template_versions (server_id, layout_id) WHERE layout_id IS NOT NULL;
