import Foundation

/// Output of commands: text, tables and JSON. Lines, tables and fields are ``printable(_:)``, as they may contain text from files, clients or peers.
package enum Output {
    /// In place of a secret.
    static let hidden = "<hidden: --reveal shows it>"

    package static func line(_ text: String = "") {
        self.text(printable(text))
    }

    /// Prints text of any number of lines, unchanged.
    package static func text(_ text: String) {
        guard Invocation.current.writeOutput(text + "\n") else {
            CommandFailure.report(CommandFailure.outputFailed.message)
            exit(CommandFailure.outputFailed.code.rawValue)
        }
    }

    package static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        text(printableJSON(try encoder.encode(value)))
    }

    /// Prints columns as wide as their widest cell.
    package static func table(_ header: [String], _ rows: [[String]]) {
        let all = [header] + rows.map { $0.map(printable) }
        let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        for row in all {
            let cells = zip(row, widths).map { cell, width in cell + String(repeating: " ", count: width - cell.count) }
            line(cells.joined(separator: "  ").trimmingCharacters(in: .whitespaces))
        }
    }

    /// Prints names and values in two aligned columns.
    static func fields(_ fields: [(String, String)]) {
        let fields = fields.map { (printable($0), printable($1)) }
        let width = fields.map(\.0.count).max() ?? 0
        for (name, value) in fields {
            line(name + String(repeating: " ", count: width - name.count + 2) + value)
        }
    }

    /// Prints an object or an array as JSON, or the fields of each object, with an empty line between them.
    static func fields<Report: FieldsReport>(_ reports: [Report], asJSON: Bool, isArray: Bool = true) throws {
        if asJSON { return isArray ? try json(reports) : try json(reports[0]) }
        for (index, report) in reports.enumerated() {
            if index > 0 { line() }
            fields(report.fields)
        }
    }

    /// Escapes characters that could control a terminal or begin a new line.
    static func printable(_ text: String) -> String {
        escaped(text) { "\\u{\(String($0.value, radix: 16))}" }
    }

    /// JSON with the same characters escaped, as JSON escapes them: encoders leave those from U+007F as they are.
    static func printableJSON(_ json: some Collection<UInt8>) -> String {
        // Line breaks are outside of strings: encoders escape those within.
        let lines = String(decoding: json, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { line in
            escaped(line) { scalar in
                String(scalar).utf16.map { "\\u" + String(0x10000 + Int($0), radix: 16).dropFirst() }.joined()
            }
        }.joined(separator: "\n")
    }

    private static func escaped(_ text: some StringProtocol, _ escape: (Unicode.Scalar) -> String) -> String {
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return String(text) }
        return text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .lineSeparator, .paragraphSeparator: escape(scalar)
            default: String(scalar)
            }
        }.joined()
    }
}

/// A report that a command prints as names and values, or as JSON.
protocol FieldsReport: Encodable {
    var fields: [(String, String)] { get }
}

extension FieldsReport {
    func print(asJSON: Bool) throws { try Output.fields([self], asJSON: asJSON, isArray: false) }
}
