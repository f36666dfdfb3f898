/// What a check found: in readiness, in `admin status` and in `doctor`.
package struct Finding: Codable, Hashable, Sendable {
    package enum Verdict: String, Codable, Comparable, Sendable {
        case ok
        case warn
        case fail

        private var rank: Int {
            switch self {
            case .ok: 0
            case .warn: 1
            case .fail: 2
            }
        }

        package static func < (left: Verdict, right: Verdict) -> Bool { left.rank < right.rank }
    }

    /// What was looked at, a word or two.
    package let check: String
    package let verdict: Verdict
    /// What was found, without a full stop.
    package let text: String
    /// What to do about it; nil when it is all right, or the text says it.
    package let remedy: String?

    package init(_ check: String, _ verdict: Verdict, _ text: String, remedy: String? = nil) {
        self.check = check
        self.verdict = verdict
        self.text = text
        self.remedy = remedy
    }
}

extension Sequence<Finding> {
    /// Of all; ok of none.
    package var worst: Finding.Verdict { map(\.verdict).max() ?? .ok }
}
