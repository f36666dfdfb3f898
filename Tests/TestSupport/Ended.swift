import Foundation

/// How a run of the program ended, and its output.
package struct Ended: Sendable {
    package let status: Int32
    package let output: String
    package let errors: String

    package init(status: Int32, output: String, errors: String) {
        self.status = status
        self.output = output
        self.errors = errors
    }

    /// Standard error if it is a single line, as for all failures; else nil.
    package var failure: String? {
        guard errors.hasPrefix("waku-push: "), errors.hasSuffix("\n"), errors.filter(\.isNewline).count == 1 else { return nil }
        return String(errors.dropFirst("waku-push: ".count).dropLast())
    }

    package func json<T: Decodable>(_ type: T.Type = T.self) throws -> T {
        try JSONDecoder().decode(type, from: Data(output.utf8))
    }

    /// The value of a line that consists of a name, at least two spaces, and a value.
    package func field(_ name: String) -> String? {
        for line in output.split(separator: "\n") where line.hasPrefix(name + "  ") {
            return line.dropFirst(name.count).trimmingCharacters(in: .whitespaces)
        }
        return nil
    }

    /// Lines of a table, cell by cell.
    package var rows: [[String]] {
        output.split(separator: "\n").map { line in
            line.replacing("  ", with: "\t").split(separator: "\t").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }
}
