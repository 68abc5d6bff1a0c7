-- name: datasets
SELECT d.slug, d.folder, d.kind, h.last,
    count(p.*) FILTER (WHERE p.state = 'open'), count(p.*) FILTER (WHERE p.state = 'closed'),
    (SELECT count(*) FROM timestore.ingest_batches b WHERE b.dataset = d.slug AND b.state = 'staged')
FROM timestore.datasets d CROSS JOIN bus.ingress_head h
LEFT JOIN timestore.partitions p ON p.dataset = d.slug
WHERE d.status = 'active'
GROUP BY d.slug, h.last
ORDER BY d.kind DESC, d.slug
