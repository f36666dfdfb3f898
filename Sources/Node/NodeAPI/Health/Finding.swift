/// The result of a check: in readiness, `admin status` and `doctor`.
public struct Finding: Codable, Hashable, Sendable {
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

    /// The name of the check, a word or two.
    package let check: String
    package let verdict: Verdict
    /// The result in words, without a full stop.
    package let text: String
    /// How to fix the problem; nil if there is none, or `text` says it.
    package let remedy: String?

    package init(_ check: String, _ verdict: Verdict, _ text: String, remedy: String? = nil) {
        self.check = check
        self.verdict = verdict
        self.text = text
        self.remedy = remedy
    }
}

extension Sequence<Finding> {
    /// The worst verdict; ok if there are no findings.
    package var worst: Finding.Verdict { map(\.verdict).max() ?? .ok }
}
