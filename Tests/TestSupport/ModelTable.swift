import Foundation

/// A file of `Tests/models` that the models in Promela include: decisions of the code for every case that a model distinguishes.
///
/// The files are written with `WAKU_PUSH_WRITE_TABLES=1`, before the models run, and not kept: so code and models can't drift apart.
package struct ModelTable {
    /// The decision in a case; ``impossible`` if the case cannot occur.
    package typealias Entry = (decision: Int, description: String)

    package static let impossible = 0

    private let file: URL
    private var lines: [String]

    /// - Parameters:
    ///   - name: the name of the file.
    ///   - source: the name of the test that generates it.
    package init(_ name: String, by source: String) {
        file = Repository.file("Tests/models").appending(path: name)
        lines = ["/* Generated from the code by \(source). */"]
    }

    /// Adds names for numbers.
    package mutating func define(_ names: [String], from first: Int = 0) {
        lines += names.enumerated().map { "#define \($1) \(first + $0)" }
    }

    package mutating func define(_ name: String, _ value: Bool) {
        lines.append("#define \(name) \(value ? 1 : 0)")
    }

    /// Adds an array, whose index is the number of the case.
    package mutating func add(_ name: String, _ entries: [Entry]) {
        lines.append("hidden byte \(name)[\(entries.count)] = {")
        lines += entries.enumerated().map { place, entry in
            "    \(entry.decision)\(place == entries.count - 1 ? " " : ",") /* \(entry.description) */"
        }
        lines.append("};")
    }

    package func write() throws {
        guard GeneratedTable.areWritten else { return }
        try lines.map { $0 + "\n" }.joined().write(to: file, atomically: true, encoding: .utf8)
    }
}
