import Foundation

/// What a command prints: tables for people, JSON for programs.
enum Output {
    static func line(_ text: String = "") {
        guard Invocation.current.writeOutput(text + "\n") else {
            CommandFailure.tell("standard output can't be written to")
            exit(CommandFailure.Code.cannotCreate.rawValue)
        }
    }

    static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        line(String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    /// Columns as wide as their widest cell.
    static func table(_ header: [String], _ rows: [[String]]) {
        let all = [header] + rows
        let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        for row in all {
            let cells = zip(row, widths).map { cell, width in cell + String(repeating: " ", count: width - cell.count) }
            line(cells.joined(separator: "  ").trimmingCharacters(in: .whitespaces))
        }
    }

    /// Names before values, aligned.
    static func fields(_ fields: [(String, String)]) {
        let width = fields.map(\.0.count).max() ?? 0
        for (name, value) in fields {
            line(name + String(repeating: " ", count: width - name.count + 2) + value)
        }
    }

    /// Clients choose their ids: nothing in them may move the cursor of a terminal.
    static func printable(_ text: String) -> String {
        text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .lineSeparator, .paragraphSeparator: "\\u{\(String(scalar.value, radix: 16))}"
            default: String(scalar)
            }
        }.joined()
    }
}
