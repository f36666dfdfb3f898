/// Collects the failures of independent checks, so that one run reports them all, each with file and line.
///
/// A failure whose text is already known is dropped: a check of a single value and a check of the whole may find the same.
final class ConfigurationFailures {
    /// More are counted, and not kept.
    static let limit = 100

    /// In the order of the checks.
    private(set) var failures: [CommandFailure] = []
    /// Texts, and texts with their places.
    private var known: Set<String> = []
    /// Beyond ``limit``.
    private var omitted = 0
    /// The first error that is not reported on one line.
    private var unexplained: (any Error)?

    /// - Parameter failures: the failures found while reading the file and the values.
    init(_ failures: [CommandFailure] = []) {
        for failure in failures { record(failure, at: nil) }
    }

    /// Runs a check.
    ///
    /// - Parameter option: the option whose place the failure is reported with; nil for the option that the message begins with.
    /// - Returns: nil if the check fails.
    @discardableResult
    func check<Result>(_ option: String? = nil, body: () throws -> Result) -> Result? {
        run(body) { failure in record(failure, at: ServeOption.place(of: option ?? Self.option(in: failure.message))) }
    }

    /// Checks each value of an option that repeats by itself.
    func checkEach(_ option: String, _ values: [String], _ body: (String) throws -> Void) {
        for (index, value) in values.enumerated() {
            run({ try body(value) }) { record($0, at: ServeOption.place(of: option, index: index), isOfValue: true) }
        }
    }

    /// Runs a check of a setting that has a place of its own.
    ///
    /// - Parameter place: file and line; nil if the message has it, or the command line is meant.
    @discardableResult
    func check<Result>(at place: String?, body: () throws -> Result) -> Result? {
        run(body) { record($0, at: place, isOfValue: place != nil) }
    }

    @discardableResult
    private func run<Result>(_ body: () throws -> Result, failed: (CommandFailure) -> Void) -> Result? {
        do {
            return try body()
        } catch {
            if let failure = CommandFailure(explaining: error) {
                failed(failure)
            } else if unexplained == nil {
                unexplained = error
            }
            return nil
        }
    }

    /// - Parameter isOfValue: whether it concerns one of several values of an option: another value may fail in the same way at another place.
    private func record(_ failure: CommandFailure, at place: String?, isOfValue: Bool = false) {
        let isPlaced = place.map { failure.message.hasPrefix($0) } ?? true
        let message = isPlaced ? failure.message : "\(place ?? ""): \(failure.message)"
        let isKnown = known.contains(isOfValue ? message : failure.message)
        known.formUnion([message, failure.message])
        guard !isKnown else { return }
        guard failures.count < Self.limit else { return omitted += 1 }
        failures.append(CommandFailure(failure.code, message))
    }

    /// - Throws: ``InvalidConfiguration`` with everything that was found.
    func finish() throws {
        guard !failures.isEmpty else {
            if let unexplained { throw unexplained }
            return
        }
        if omitted > 0 { failures.append(CommandFailure(.usage, "\(omitted) more errors: fix these first")) }
        throw InvalidConfiguration(failures: failures)
    }

    /// The option that a message begins with.
    private static func option(in message: String) -> String? {
        guard message.hasPrefix("--") else { return nil }
        return String(message.dropFirst(2).prefix { $0 != " " && $0 != ":" })
    }
}

/// Everything that is wrong with a configuration. The exit code is that of the first.
struct InvalidConfiguration: Error {
    /// Not empty.
    let failures: [CommandFailure]

    /// One line, for a log record.
    var message: String { failures.map(\.message).joined(separator: "; ") }
}
