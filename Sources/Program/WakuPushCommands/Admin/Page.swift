import ArgumentParser

/// Selects a part of a list.
struct Page: ParsableArguments {
    @Option(help: "Maximum number of results.", transform: Self.limit) var limit = 100
    @Option(help: "Number of results to skip.", transform: Self.offset) var offset = 0

    /// - Throws: `ValidationError` that describes a valid value, as ``offset(_:)``.
    static func limit(_ text: String) throws -> Int { try count(text, atLeast: 1) }

    private static func offset(_ text: String) throws -> Int { try count(text, atLeast: 0) }

    private static func count(_ text: String, atLeast minimum: Int) throws -> Int {
        guard let count = Int(text), count >= minimum else { throw ValidationError("give a whole number, at least \(minimum)") }
        return count
    }
}
