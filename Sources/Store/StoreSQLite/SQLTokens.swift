/// The tokens of a CREATE TABLE or CREATE INDEX statement: equal for statements that differ only in spaces, comments, case and needless quotes.
struct SQLTokens: Hashable, Sendable {
    /// Words and identifiers are in lower case. Strings keep their quotes, and so do identifiers that need them.
    let tokens: [String]

    /// Words that are names only in quotes, which are therefore kept.
    private static let keywords: Set<String> = [
        "always", "as", "autoincrement", "blob", "check", "collate", "conflict", "constraint", "create", "default", "generated", "index",
        "integer", "is", "key", "not", "null", "on", "primary", "references", "rowid", "strict", "table", "text", "unique", "where",
        "without",
    ]

    init(_ sql: String) {
        var (tokens, rest) = ([String](), Substring(sql)[...])
        while let first = rest.first {
            if first.isWhitespace {
                rest.removeFirst()
            } else if rest.hasPrefix("--") {
                rest = rest.drop { !$0.isNewline }
            } else if rest.hasPrefix("/*") {
                rest = Self.behind("*/", rest.dropFirst(2))
            } else if let end = Self.quotes[first] {
                let content = rest.dropFirst().prefix { $0 != end }
                rest = rest.dropFirst(content.count + 2)
                tokens.append(first == "'" ? "'\(content)'" : Self.name(content))
            } else if Self.isWord(first) {
                let word = rest.prefix(while: Self.isWord)
                rest = rest.dropFirst(word.count)
                tokens.append(word.lowercased())
            } else {
                tokens.append(String(rest.removeFirst()))
            }
        }
        self.tokens = tokens
    }

    private static let quotes: [Character: Character] = ["'": "'", "\"": "\"", "`": "`", "[": "]"]

    private static func isWord(_ character: Character) -> Bool {
        character == "_" || character == "$" || !character.isASCII || character.isLetter || character.isNumber
    }

    private static func name(_ content: Substring) -> String {
        let name = content.lowercased()
        return name.allSatisfy(isWord) && !name.isEmpty && !keywords.contains(name) ? name : "\"\(name)\""
    }

    private static func behind(_ end: String, _ text: Substring) -> Substring {
        text.firstRange(of: end).map { text[$0.upperBound...] } ?? text[text.endIndex...]
    }

    /// Whether the statement creates an index over plain columns, which rejects no row and calls no function.
    var isPlainIndex: Bool {
        guard tokens.starts(with: ["create", "index"]), tokens.count > 7, tokens[3] == "on", tokens[5] == "(", tokens.last == ")" else {
            return false
        }
        return tokens[6..<(tokens.count - 1)].allSatisfy { token in
            token == "," || (token.first.map(Self.isWord) == true && token != "collate")
        }
    }

    /// The first token that differs in another statement; nil when there is none.
    func difference(from other: SQLTokens) -> String? {
        for (index, token) in tokens.enumerated() where index >= other.tokens.count || other.tokens[index] != token { return token }
        return nil
    }
}
