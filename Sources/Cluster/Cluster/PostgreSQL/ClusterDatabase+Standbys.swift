package import NodeAPI
package import Storage
import StorePostgreSQL

extension ClusterDatabase {
    /// The standbys of the database and how far they are behind, sorted by name. A physical slot that is not in use stands for a standby that is
    /// gone: the server keeps write-ahead log for it. The two connections of a base backup are none.
    ///
    /// PostgreSQL shows them only to roles with `pg_monitor` or `pg_read_all_stats`.
    ///
    /// - Throws: `StoreError`; with `permission` if the role may not see them.
    package func standbys() throws(StoreError) -> [ClusterStatus.Standby] {
        let select = Statement(
            """
            SELECT coalesce(application_name, '') AS name, coalesce(state, ''), coalesce(sync_state, ''), \
            coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint, -1), \
            (extract(epoch FROM replay_lag) * 1000)::bigint, (state IS NULL)::integer::bigint \
            FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup' AND application_name IS DISTINCT FROM 'pg_basebackup' \
            UNION ALL SELECT slot_name::text, '\(ClusterStatus.Standby.notConnected)', 'slot', \
            coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, -1), NULL, 0 \
            FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active AND (restart_lsn IS NOT NULL OR wal_status = 'lost') \
            ORDER BY name
            """)
        let (standbys, hiddenCount) = try maintenance.read([select]) { found in
            let hidden = try found[0].count { try $0.integer(5) == 1 }
            let standbys = try found[0].map { row in
                let bytes = try row.integer(3)
                return ClusterStatus.Standby(
                    name: try row.text(0), state: try row.text(1), sync: try row.text(2), lagBytes: bytes < 0 ? nil : Int(bytes),
                    lagSeconds: try row.optionalInteger(4).map { Double($0) / 1000 })
            }
            return (standbys, hidden)
        }
        guard hiddenCount == 0 else {
            throw StoreError(
                code: .permission, message: "PostgreSQL hides its standbys from this role: GRANT pg_monitor TO the role of --store")
        }
        return standbys
    }
}
