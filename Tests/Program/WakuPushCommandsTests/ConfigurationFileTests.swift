import Testing

@testable import WakuPushCommands

struct ConfigurationFileTests {
    private func parse(_ text: String) throws(CommandFailure) -> ConfigurationFile {
        try ConfigurationFile(parsing: text, path: "f.yaml", known: ["data", "relay", "limit", "gorush"], lists: ["relay", "limit"])
    }

    @Test(arguments: ["", "\n", "# nothing\n", "~", "null"]) func anEmptyFileHasNoOptions(text: String) throws {
        let file = try parse(text)
        #expect(file.options.isEmpty)
        #expect(file.endpoints.isEmpty)
    }

    @Test func scalarsListsAndMappings() throws {
        let file = try parse("data: d\nrelay: [a, b]\nlimit:\n  requests: 5/s\n  queries: no\ngorush:\n")
        #expect(file.options["data"] == ConfigurationFile.Setting(values: ["d"], place: "f.yaml:1"))
        #expect(file.options["relay"] == ConfigurationFile.Setting(values: ["a", "b"], place: "f.yaml:2"))
        #expect(
            file.options["limit"]
                == ConfigurationFile.Setting(
                    values: ["requests=5/s", "queries=off"], place: "f.yaml:3", places: ["f.yaml:4", "f.yaml:5"]))
        #expect(file.options["gorush"] == nil)
    }

    @Test func endpoints() throws {
        let file = try parse("gorush-endpoints:\n  - {name: a, url: u, platforms: [apn, firebase]}\n  - url: v\n")
        #expect(file.endpoints.map { $0[.url] } == ["u", "v"])
        #expect(file.endpoints.map { $0.list(.platforms) } == [["apn", "firebase"], nil])
        #expect(file.endpoints.map(\.place) == ["f.yaml:2", "f.yaml:3"])
    }

    @Test(arguments: [
        ("- a", "configuration f.yaml: it must consist of lines \"option: value\""),
        ("dta: 1", "f.yaml:1: there is no option dta: did you mean data?"),
        ("limit: {a: [b]}", "f.yaml:1: values of limit must be plain values"),
        ("data: [a, b]", "f.yaml:1: data must be one value, not a list"), ("data: []", "f.yaml:1: data must be one value, not a list"),
        ("relay: a\ndata: {a: b}", "f.yaml:2: data must be one value, not a list"),
        ("gorush-endpoints: [{url: u, platforms: [apn], ca: [a, b]}]", "f.yaml:1: ca must be one value, not a list"),
        ("gorush-endpoints: [{name: [a]}]", "f.yaml:1: name must be one value, not a list"),
        ("gorush-endpoints: [a]", "f.yaml:1: an endpoint must consist of lines \"key: value\""),
    ])
    func problems(text: String, message: String) {
        var failures: [CommandFailure] = []
        do throws(CommandFailure) {
            failures = try parse(text).problems
        } catch {
            failures = [error]
        }
        #expect(failures.map(\.code) == [.data])
        #expect(failures.map(\.message) == [message])
    }

    @Test func similarNamesAreSuggested() {
        let names: Set = ["data", "relay", "poll-interval"]
        #expect(ConfigurationFile.nearest(to: "dat", among: names) == "data")
        #expect(ConfigurationFile.nearest(to: "polinterval", among: names) == "poll-interval")
        #expect(ConfigurationFile.nearest(to: "xyzzy", among: names) == nil)
        #expect(ConfigurationFile.nearest(to: "data", among: []) == nil)
    }
}
