import ArgumentParser

/// Selects a part of a list.
struct Page: ParsableArguments {
    @Option(help: "Maximum number of results.") var limit = ResultLimit()
    @Option(help: "Number of results to skip.") var offset = 0

    func validate() throws {
        guard offset >= 0 else { throw ValidationError("--offset must be at least 0") }
    }
}
