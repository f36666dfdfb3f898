package import Foundation

/// A part of an article that is generated from the code, between the lines `<!-- NAME -->` and `<!-- /NAME -->`.
///
/// `Deploy/dev/generate-tables` runs the tests of such parts with `WAKU_PUSH_WRITE_TABLES=1`; then they write the parts instead of checking them.
package struct GeneratedTable {
    /// Whether tables are written instead of checked.
    static var areWritten: Bool { ProcessInfo.processInfo.environment["WAKU_PUSH_WRITE_TABLES"] == "1" }

    private static let folder = Repository.file("Sources/Node/PushNode/PushNode.docc")

    package let name: String
    package let article: URL

    /// - Parameter article: The file name of an article of PushNode.
    package init(_ name: String, in article: String) {
        self.init(name, in: Self.article(article))
    }

    package init(_ name: String, in article: URL) {
        self.name = name
        self.article = article
    }

    package static func article(_ name: String) -> URL { folder.appending(path: name) }

    /// Whether the article's part consists of these lines.
    ///
    /// - Throws: errors of reading and writing; ``TestFailure`` without the marks.
    package func isCurrent(_ lines: [String]) throws -> Bool {
        let text = try String(contentsOf: article, encoding: .utf8)
        guard let start = text.range(of: "<!-- \(name) -->\n")?.upperBound,
            let stop = text.range(of: "<!-- /\(name) -->\n", range: start..<text.endIndex)?.lowerBound
        else { throw TestFailure("no marks of \(name)") }
        let table = lines.map { $0 + "\n" }.joined()
        if Self.areWritten, text[start..<stop] != table {
            try text.replacingCharacters(in: start..<stop, with: table).write(to: article, atomically: true, encoding: .utf8)
            return true
        }
        return text[start..<stop] == table
    }
}
