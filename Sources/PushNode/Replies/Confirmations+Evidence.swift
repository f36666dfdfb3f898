import Waku

extension Confirmations {
    /// What stores tell of one message.
    ///
    /// The store of another relay than those that published it is a witness; if one has the message, it is out. The publisher's own store, or
    /// its word that a peer took it, is a claim: it counts where there is no witness, and does not where all witnesses lack the message.
    enum Evidence: Hashable, Sendable {
        /// A witness has it; or there is no witness, and the publisher claims it.
        case confirmed
        /// All witnesses lack it; or there is none, and the publisher's store lacks it.
        case missing(isClaimed: Bool, witnesses: Set<Int>)
        /// A witness did not answer, and may later.
        case undecided(isClaimed: Bool)
        /// No store tells anything.
        case unknown

        /// - Parameter keepers: The places of relays whose stores keep messages at all: that another lacks one says nothing.
        init(of message: Message, _ findings: StoreFindings, keepers: Set<Int>) {
            let holders = Set(findings.found.filter { $0.value.contains(message.hash) }.keys)
            let isClaimed = message.isVouchedFor || !holders.isDisjoint(with: message.places)
            if !holders.isSubset(of: message.places) {
                self = .confirmed
            } else if !keepers.isSubset(of: message.places) {
                self = .missing(isClaimed: isClaimed, witnesses: keepers.subtracting(message.places))
            } else if !findings.unavailable.isSubset(of: message.places) {
                self = .undecided(isClaimed: isClaimed)
            } else if isClaimed {
                self = .confirmed
            } else {
                self = keepers.isEmpty ? .unknown : .missing(isClaimed: false, witnesses: [])
            }
        }

        var isConfirmed: Bool { self == .confirmed }

        var isUndecided: Bool {
            if case .undecided = self { true } else { false }
        }

        var isMissing: Bool {
            if case .missing = self { true } else { false }
        }

        /// Whether it is confirmed, or its publisher claims it.
        var isClaimed: Bool {
            switch self {
            case .confirmed, .missing(isClaimed: true, _), .undecided(isClaimed: true): true
            case .missing, .undecided, .unknown: false
            }
        }
    }
}
