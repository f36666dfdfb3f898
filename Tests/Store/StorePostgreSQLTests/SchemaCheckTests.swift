import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import StorePostgreSQL

@Suite("Tables that differ from their declarations", .timeLimit(.minutes(5)))
struct SchemaCheckTests {
    private static let index = Index("counter_owner", on: [Counters.owner, Counters.count], where: .present(Counters.owner))
    private static let table = Table(
        "counter", columns: Counters.table.columns, unique: [Counters.number], indexes: [index], sealed: Counters.table.sealed)
    private static let part = StorePart("counters", tables: [table])

    private let fixture: StoreFixture

    init() throws {
        fixture = try StoreFixture()
        try open().close()
    }

    private func open() throws -> PostgreSQLStore {
        try PostgreSQLStore(fixture.address(), storageKey: fixture.storageKey, parts: [Self.part])
    }

    private func change(_ sql: [String]) throws {
        let connection = try fixture.connection()
        for sql in sql { _ = try connection.run(Statement(sql, isPrepared: false)) }
    }

    private static func function(_ name: String) -> String {
        "CREATE FUNCTION \(name)() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    }

    @Test(
        "A foreign object is refused at the start and by a check, in one line that names it",
        arguments: [
            (
                [function("own"), "CREATE TRIGGER own BEFORE INSERT ON counter FOR EACH ROW EXECUTE FUNCTION own()"],
                "trigger own on counter: drop it"
            ),
            (
                [function("notify_x"), "CREATE TRIGGER notify_x BEFORE INSERT ON counter FOR EACH ROW EXECUTE FUNCTION notify_x()"],
                "trigger notify_x on counter: drop it"
            ),
            (
                [function("own"), "CREATE TRIGGER notify_x AFTER INSERT ON counter FOR EACH ROW EXECUTE FUNCTION own()"],
                "trigger notify_x on counter: drop it"
            ),
            (["CREATE RULE own AS ON INSERT TO counter DO INSTEAD NOTHING"], "rule own on counter: drop it"),
            (["ALTER TABLE counter ADD CONSTRAINT own CHECK (count < 3)"], "constraint own on counter: drop it"),
            (["ALTER TABLE counter ENABLE ROW LEVEL SECURITY"], "row security on counter"),
            (["ALTER TABLE property SET UNLOGGED"], "table property is unlogged"),
            (["CREATE TABLE child () INHERITS (counter)"], "counter is not a table of its own"),
            (["ALTER TABLE counter RENAME TO real", "CREATE VIEW counter AS SELECT * FROM real"], "counter is not a table of its own"),
            (["ALTER TABLE counter ADD COLUMN big text GENERATED ALWAYS AS (repeat('x', 10)) STORED"], "column big of counter is computed"),
            (["ALTER TABLE counter ALTER COLUMN owner SET DEFAULT 7"], "column owner of counter is computed"),
            (["ALTER TABLE counter ADD COLUMN wanted bigint NOT NULL"], "column wanted of counter is required"),
            (
                ["ALTER TABLE counter ALTER COLUMN count TYPE integer"],
                "column count of counter is integer NOT NULL instead of bigint NOT NULL"
            ),
            (["ALTER TABLE counter ALTER COLUMN count DROP NOT NULL"], "column count of counter is bigint instead of bigint NOT NULL"),
            (["ALTER TABLE counter DROP COLUMN owner CASCADE"], "column owner of counter is missing"),
            (["DROP TABLE counter"], "table counter is missing"),
            (["DROP INDEX counter_owner"], "index counter_owner on counter is missing: CREATE INDEX"),
            (["DROP INDEX counter_owner", "CREATE INDEX counter_owner ON counter (owner)"], "index counter_owner on counter is missing"),
            (["ALTER TABLE counter DROP CONSTRAINT counter_number_key"], "unique key (\"number\") of counter is missing: ALTER TABLE"),
            (["CREATE UNIQUE INDEX once ON counter (count)"], "index once on counter: drop it"),
            (["CREATE INDEX computed ON counter (repeat('x', count::integer))"], "index computed on counter: drop it"),
            (["CREATE INDEX few ON counter (count) WHERE 1 / count > 0"], "index few on counter: drop it"),
        ])
    func foreignObjects(sql: [String], expected: String) throws {
        let store = try PostgreSQLStore(existing: fixture.address(), storageKey: nil, parts: [Self.part])
        #expect(try store.inspect(isUnsealing: false, limit: nil).isWhole)
        try change(sql)
        for attempt in [{ _ = try open() }, { _ = try store.inspect(isUnsealing: false, limit: nil) }] as [() throws -> Void] {
            let error = #expect(throws: StoreError.self) { try attempt() }
            #expect(error?.code == .unsuitable)
            #expect(error?.message.contains(expected) == true, "\(String(describing: error))")
        }
    }

    @Test(
        "Changes that leave rows as they were written are accepted",
        arguments: [
            "CREATE INDEX own ON counter (count, number DESC)", "CREATE INDEX later ON counter (count) WHERE owner = 1",
            "ALTER TABLE counter ADD COLUMN later bytea", "ALTER TABLE counter SET (fillfactor = 70)", "CREATE TABLE note (text text)",
            "CREATE VIEW numbers AS SELECT number FROM counter", "CREATE UNIQUE INDEX counter_number_key_ccnew ON counter (number)",
            "CREATE TABLE mark (row_id bigint REFERENCES counter (id) ON DELETE CASCADE)", "REINDEX TABLE counter", "ANALYZE counter",
            "CREATE STATISTICS own ON count, owner FROM counter", "ALTER TABLE counter REPLICA IDENTITY FULL",
        ])
    func harmlessChanges(sql: String) throws {
        try change([sql])
        let store = try open()
        #expect(try store.inspect(limit: nil).isWhole)
        try store.close()
    }
}
