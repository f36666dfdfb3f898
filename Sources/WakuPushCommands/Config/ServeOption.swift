import ArgumentParser
import Foundation

/// An option of serve, as its help has it.
struct ServeOption {
    let name: String
    let help: String
    /// As it would be given; nil for none, and for flags.
    let standard: String?
    let isFlag: Bool
    let isList: Bool

    /// In the order of the help.
    static let all: [ServeOption] = {
        struct Dump: Decodable {
            struct Command: Decodable { let arguments: [Argument] }
            struct Argument: Decodable {
                struct Name: Decodable { let name: String }
                let kind: String
                let preferredName: Name?
                let abstract: String?
                let defaultValue: String?
                let isRepeating: Bool
            }
            let command: Command
        }
        let text = Environment.hidden { Serve._dumpHelp() }
        guard let dump = try? JSONDecoder().decode(Dump.self, from: Data(text.utf8)) else { return [] }
        var seen: Set<String> = ["help", "version", "config"]
        return dump.command.arguments.compactMap { argument in
            let isFlag = argument.kind == "flag"
            guard var name = argument.preferredName?.name else { return nil }
            // A flag comes in two forms, of which one is its name.
            if isFlag, name.hasPrefix("no-") { name.removeFirst(3) }
            guard seen.insert(name).inserted else { return nil }
            return ServeOption(
                name: name, help: argument.abstract ?? "", standard: isFlag ? "false" : argument.defaultValue, isFlag: isFlag,
                isList: argument.isRepeating)
        }
    }()

    static let names = Set(all.map(\.name))

    /// What it is in force with, and where that is from.
    struct Value: Encodable, Equatable {
        let option: String
        /// Empty: it has no value.
        let values: [String]
        /// `command line`, an environment variable, a line of the configuration file, or `default`.
        let source: String
    }

    /// - Parameter arguments: of the command line.
    func value(_ arguments: [String]) -> Value {
        var given: [String] = []
        for (index, argument) in arguments.enumerated() {
            if isFlag {
                if argument == "--\(name)" { given = ["true"] }
                if argument == "--no-\(name)" { given = ["false"] }
            } else if argument == "--\(name)" {
                given += arguments.dropFirst(index + 1).prefix(1)
            } else if argument.hasPrefix("--\(name)=") {
                given.append(String(argument.dropFirst(name.count + 3)))
            }
        }
        if !given.isEmpty { return Value(option: name, values: isList ? given : given.suffix(1), source: "command line") }
        if let (values, source) = Environment.setting(name) {
            let place = source.split(separator: ": ").first.map(String.init) ?? source
            return Value(option: name, values: isList ? Environment.list(name) : values.suffix(1), source: place)
        }
        return Value(option: name, values: standard.map { [$0] } ?? [], source: "default")
    }
}
