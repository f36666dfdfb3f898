import ArgumentParser
import Testing

@testable import WakuPushCommands

struct ServeOptionTests {
    private func option(_ name: String) throws -> ServeOption {
        try #require(ServeOption.all.first { $0.name == name })
    }

    private func value(_ name: String, _ arguments: [String], environment: [String: String] = [:]) throws -> ServeOption.Value {
        let option = try option(name)
        return withEnvironment(environment) { option.value(["waku-push", "serve"] + arguments) }
    }

    @Test func namesAreUniqueAndDescribed() {
        #expect(ServeOption.all.count > 40)
        #expect(ServeOption.names.count == ServeOption.all.count)
        for option in ServeOption.all { #expect(!option.help.isEmpty, "\(option.name)") }
        #expect(ServeOption.names.isDisjoint(with: ["help", "version", "config"]))
    }

    /// An option that is missing in the table would be unknown in the configuration file.
    @Test func helpListsTheDeclaredOptions() {
        let lines = Serve.helpMessage(columns: 10_000).split(separator: "\n").filter { $0.hasPrefix("  --") }
        let shown = lines.map { $0.dropFirst(4).prefix { !" /".contains($0) } }.filter { !["config", "version", "help"].contains($0) }
        #expect(Set(shown.map(String.init)) == ServeOption.names)
    }

    /// SIGHUP compares the contents of these files.
    @Test func optionsThatNameAFileAreDeclaredAsSuch() {
        for option in ServeOption.all where option.name != "identity" {
            #expect(option.isFile == option.help.hasPrefix("File with"), "\(option.name)")
        }
        #expect(ServeOption.all.first { $0.name == "identity" }?.isFile == true)
    }

    /// Built-in defaults, regardless of the environment at their first use.
    @Test func kinds() throws {
        #expect(try option("poll-interval").standard == "300ms")
        #expect(try option("identity").standard == nil)
        #expect(try option("relay").isList)
        #expect(try !option("data").isList)
        #expect(try option("idempotent-registrations").isFlag)
        #expect(try option("idempotent-registrations").standard == "false")
    }

    @Test func theLastValueOnTheCommandLineCounts() throws {
        let value = try value("poll-interval", ["--poll-interval", "1s", "--poll-interval=2s"])
        #expect(value == ServeOption.Value(option: "poll-interval", values: ["2s"], source: "command line"))
    }

    @Test func listsKeepAllOfTheirValues() throws {
        #expect(try value("relay", ["--relay", "a", "--relay=b"]).values == ["a", "b"])
        let fromEnvironment = try value("relay", [], environment: ["WAKU_PUSH_RELAY": "a, b,c"])
        #expect(fromEnvironment == ServeOption.Value(option: "relay", values: ["a", "b", "c"], source: "WAKU_PUSH_RELAY"))
    }

    @Test func flagsHaveTwoForms() throws {
        let name = "idempotent-registrations"
        #expect(try value(name, ["--\(name)"]).values == ["true"])
        #expect(try value(name, ["--\(name)", "--no-\(name)"]).values == ["false"])
        #expect(try value(name, []) == ServeOption.Value(option: name, values: ["false"], source: "default"))
    }

    @Test func theCommandLinePrecedesTheEnvironment() throws {
        let environment = ["WAKU_PUSH_DATA": "elsewhere"]
        #expect(try value("data", ["--data", "here"], environment: environment).values == ["here"])
        #expect(
            try value("data", [], environment: environment)
                == ServeOption.Value(option: "data", values: ["elsewhere"], source: "WAKU_PUSH_DATA"))
        #expect(try value("data", [], environment: ["WAKU_PUSH_DATA": ""]).source == "default")
    }
}
