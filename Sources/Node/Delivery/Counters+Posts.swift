import NodeMetrics

extension PostClassLabel {
    init(_ result: PostResult) {
        switch result.outcome {
        case .accepted, .notPosted, .unpostable: self = .accepted
        case .refused: self = .refused
        case .failed, .unclear: self = result.isOperatorsMistake ? .misconfigured : .failed
        }
    }
}

extension Counters {
    /// Counts a finished post and records its duration.
    func posted(_ result: PostResult, took: Duration) {
        record(took, in: .postTime)
        increment(.posts, PostClassLabel(result), StatusLabel(result.status))
    }
}
