-- Pieces of the search index are merged when the job says so, a few pages at a time: FTS5's own merges
-- come with whatever insert is next, and some of them take a tenth of a second.
INSERT INTO search_words (search_words, rank) VALUES ('automerge', 0);
INSERT INTO search_words (search_words, rank) VALUES ('crisismerge', 1000);
INSERT INTO search_parts (search_parts, rank) VALUES ('automerge', 0);
INSERT INTO search_parts (search_parts, rank) VALUES ('crisismerge', 1000);
