import Testing

@testable import StoreSQLite

@Suite struct SQLTokensTests {
    @Test(arguments: [
        "CREATE TABLE thing (id INTEGER)",
        "create table\tthing(\nid integer )",
        "CREATE TABLE \"thing\" ([id] INTEGER)",
        "CREATE TABLE thing ( -- things, by their ids)\n    id INTEGER)",
        "CREATE TABLE thing (id INTEGER) -- the last comment has no end",
        "CREATE /* TEMPORARY\n*/TABLE thing (id INTEGER)",
    ])
    func commentsSpacesCaseAndQuotesMakeNoDifference(sql: String) {
        #expect(SQLTokens(sql).tokens == ["create", "table", "thing", "(", "id", "integer", ")"])
    }
}
