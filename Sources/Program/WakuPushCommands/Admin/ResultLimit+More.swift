extension ResultLimit {
    /// To read with: one result more tells whether there are others.
    var oneMore: Int { count == .max ? .max : count + 1 }
}

extension Array {
    /// The first results, after a line on standard error if there are more, which a script that counts them would not notice.
    ///
    /// - Parameter offset: for a list with `--offset`: the number of results that were skipped.
    func limited(to limit: ResultLimit, offset: Int? = nil) -> [Element] {
        guard count > limit.count else { return self }
        let next = offset.map { ", or --offset \($0 + limit.count)" } ?? ""
        CommandFailure.report("there are more than these \(limit.count): give a larger --limit\(next)")
        return Array(prefix(limit.count))
    }
}
