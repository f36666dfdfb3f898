import ArgumentParser

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
