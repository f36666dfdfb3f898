import Storage

/// Finds the tables of nodes in other schemas than the one in use, which is the first existing one of `search_path`. A schema that is created or
/// renamed, or a changed `search_path`, moves the first place: a node would start with empty tables beside its own.
///
/// Tables count that the role may read, except those of benchmarks. When the connection string sets `search_path`, only the schemas in it count: nodes of several identities can
/// share a database, each with a schema of its own.
enum SchemaChoice {
    private static let find = Statement(
        """
        WITH path AS (SELECT source IN ('client', 'session') AS is_given FROM pg_settings WHERE name = 'search_path'), \
        found AS (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, path \
        WHERE c.relname IN ('store_migration', 'store_writer') AND c.relkind = 'r' AND n.nspname !~ '^(pg|waku_push_bench)_' \
        AND (n.nspname = current_schema() OR has_table_privilege(c.oid, 'SELECT') \
        AND (n.nspname = ANY (current_schemas(false)) OR NOT is_given)) \
        GROUP BY n.nspname HAVING count(*) = 2 OR n.nspname = current_schema()) \
        SELECT quote_ident(current_schema()), string_agg(quote_ident(nspname), ', ' ORDER BY nspname), \
        CASE WHEN is_given THEN 'options= of the store''s address' ELSE format('ALTER ROLE %I IN DATABASE %I SET search_path = %s', session_user, \
        current_database(), string_agg(quote_ident(nspname), ', ' ORDER BY nspname)) END \
        FROM found, path GROUP BY is_given HAVING NOT bool_or(nspname = current_schema())
        """, isPrepared: false)

    /// - Returns: why the schema in use must not be taken; nil if it has tables of nodes, or no other schema has.
    /// - Throws: errors of the database.
    static func refusal(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress) throws -> StoreError? {
        guard let row = try connection.run(find).rows.first else { return nil }
        let (first, others, remedy) = (try row.text(0), try row.text(1), try row.text(2))
        return StoreError(
            code: .unsuitable,
            message: """
                PostgreSQL (\(address)) has the tables of waku-push in schema \(others), but search_path begins with schema \(first), which has \
                none: put the former first (\(remedy)), or drop the latter. For new, empty tables see the article PostgreSQL
                """)
    }
}
