import Waku

extension Confirmations {
    /// Whether a message was published, according to the stores' findings.
    ///
    /// The store of a relay that did not publish the message is a witness: if one has the message, it was published. The publisher's own store,
    /// or its report that a peer took the message, is a claim: it counts only if there is no witness.
    enum Evidence: Hashable, Sendable {
        /// A witness has the message; or there is no witness, and the publisher claims it.
        case confirmed
        /// All witnesses lack the message; or there is none, and the publisher's store lacks it.
        case missing(isClaimed: Bool, witnesses: Set<Int>)
        /// A witness did not answer, but may later.
        case undecided(isClaimed: Bool)
        /// No store gives any information.
        case unknown

        /// - Parameter keepers: the places of relays whose stores keep messages at all. A message missing in another store means nothing.
        init(of message: Message, _ findings: StoreFindings, keepers: Set<Int>) {
            let holders = Set(findings.found.filter { $0.value.contains(message.hash) }.keys)
            let isClaimed = message.isAcknowledged || !holders.isDisjoint(with: message.places)
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

        /// Whether the message is confirmed, or its publisher claims it.
        var isClaimed: Bool {
            switch self {
            case .confirmed, .missing(isClaimed: true, _), .undecided(isClaimed: true): true
            case .missing, .undecided, .unknown: false
            }
        }
    }
}
