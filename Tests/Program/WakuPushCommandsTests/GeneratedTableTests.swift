import Foundation
import TestSupport
import Testing

/// Tables in the configuration article, generated from the program's help.
@Suite(.timeLimit(.minutes(5)))
struct GeneratedTableTests {
    private struct Dump: Decodable {
        let command: Command
    }

    private struct Command: Decodable {
        let commandName: String
        let discussion: String?
        let arguments: [Argument]?
        let subcommands: [Command]?

        /// The exit codes in its help: code and meaning.
        var exitCodes: [(code: Substring, meaning: String)] {
            let lines = (discussion ?? "").split(separator: "\n", omittingEmptySubsequences: false)
            return lines.drop { $0 != "EXIT CODES" }.dropFirst().prefix { !$0.isEmpty }.compactMap { line in
                line.wholeMatch(of: /\ +(\d+)\ +(.*)/).map { ($0.1, String($0.2)) }
            }
        }

        /// All commands below this one, with their full names, such as `admin drain`.
        func descendants(_ names: [String] = []) -> [(name: String, command: Command)] {
            (subcommands ?? []).flatMap { command in
                let path = names + [command.commandName]
                return [(path.joined(separator: " "), command)] + command.descendants(path)
            }
        }
    }

    private struct Argument: Decodable {
        struct Name: Decodable, Hashable {
            let kind: String
            let name: String
        }
        let kind: String
        let abstract: String?
        let defaultValue: String?
        let preferredName: Name?
        let names: [Name]?
        let shouldDisplay: Bool
    }

    private func root() async throws -> Command {
        try await run("--experimental-dump-help").json(Dump.self).command
    }

    private func check(_ name: String, _ columns: [String], _ rows: [[String]]) throws {
        let lines = ([columns, columns.map { _ in "---" }] + rows).map { "| " + $0.joined(separator: " | ") + " |" }
        #expect(rows.count > 1)
        #expect(try GeneratedTable(name, in: "Configuration.md").isCurrent(lines), "run Deploy/dev/generate-tables")
    }

    /// The row of an option. Its default may be at the end of the abstract.
    private func row(_ argument: Argument, name: String, isFlag: Bool) -> [String] {
        var (meaning, standard) = (argument.abstract ?? "", argument.defaultValue)
        if let end = meaning.firstMatch(of: /\ \[default: (.+)\]$/) {
            standard = String(end.1)
            meaning.removeSubrange(end.range)
        }
        if isFlag { standard = standard == "--\(name)" ? "on" : "off" }
        let variable = "WAKU_PUSH_" + name.uppercased().replacing("-", with: "_").replacing(".", with: "_")
        return [
            isFlag ? "`--[no-]\(name)`" : "`--\(name)`", "`\(variable)`",
            standard.map { "`\($0)`" } ?? "–", meaning.replacing("|", with: "\\|"),
        ]
    }

    /// ArgumentParser itself checks this in debug configurations only. Its own `--version` gives way to an option of that name.
    @Test func noCommandHasTwoOptionsOfOneName() async throws {
        for (command, definition) in try await root().descendants() {
            let ownArguments = (definition.arguments ?? []).filter { $0.kind != "flag" || $0.preferredName?.name != "version" }
            let names = ownArguments.flatMap { $0.names ?? [] }
            #expect(Set(names).count == names.count, "\(command)")
        }
    }

    @Test func options() async throws {
        let serve = try #require(try await root().descendants().first { $0.name == "serve" }).command
        let shown = (serve.arguments ?? []).filter { $0.shouldDisplay && !["help", "version"].contains($0.preferredName?.name) }
        let names = Set(shown.compactMap(\.preferredName?.name))
        var rows: [[String]] = []
        for argument in shown {
            guard let name = argument.preferredName?.name, !(name.hasPrefix("no-") && names.contains(String(name.dropFirst(3)))) else {
                continue
            }
            rows.append(row(argument, name: name, isFlag: argument.kind == "flag"))
        }
        try check("options", ["option", "in the environment", "default", "meaning"], rows)
    }

    @Test func exitCodes() async throws {
        let root = try await root()
        try check("exit codes", ["code", "meaning"], root.exitCodes.map { ["\($0.code)", $0.meaning] })
        let others = root.descendants().flatMap { name, command in command.exitCodes.map { ["`\(name)`", "\($0.code)", $0.meaning] } }
        try check("exit codes of commands", ["command", "code", "meaning"], others)
    }
}
