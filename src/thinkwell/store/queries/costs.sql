-- What turns have cost. Read away from the event loop: turns have no index by their end.

-- name: costs_by
-- Sums over ended turns by agent, principal, day (UTC) or model, the dearest first. A model whose
-- price was not known adds its tokens and counts as unpriced.
SELECT CASE :by WHEN 'agent' THEN t.agent
                WHEN 'principal' THEN json_extract(t.principal, '$.id')
                WHEN 'day' THEN date(t.settled_at, 'unixepoch')
                ELSE m.key END AS key,
       COALESCE(SUM(json_extract(m.value, '$.nanoUsd')), 0) AS nano_usd,
       COALESCE(SUM(json_extract(m.value, '$.inputTokens')), 0) AS input_tokens,
       COALESCE(SUM(json_extract(m.value, '$.outputTokens')), 0) AS output_tokens,
       COUNT(DISTINCT t.seq) AS turns,
       SUM(json_extract(m.value, '$.nanoUsd') IS NULL) AS unpriced
FROM turns t, json_each(t.spent) m
WHERE t.spent IS NOT NULL AND t.agent = COALESCE(:agent, t.agent)
  AND t.settled_at >= :since AND t.settled_at < :until
GROUP BY 1 ORDER BY nano_usd DESC, input_tokens DESC, 1;
