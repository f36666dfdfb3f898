import ArgumentParser

/// Selects a part of a list.
struct PageOptions: ParsableArguments {
    @Option(help: "Maximum number of results.") var limit = ResultLimit()
    @Option(help: "Number of results to skip.") var offset = 0

    func validate() throws {
        guard offset >= 0 else { throw ValidationError("--offset must be at least 0") }
    }
}

/// A maximum number of results, at least 1.
struct ResultLimit: ExpressibleByArgument {
    private(set) var count = 100

    init() {}

    init?(argument: String) {
        guard let count = Int(argument), count > 0 else { return nil }
        self.count = count
    }

    var defaultValueDescription: String { "\(count)" }
}
