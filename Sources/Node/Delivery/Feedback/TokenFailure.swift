import Core
import Storage

/// A failed notification, with the device of its token.
struct TokenFailure: Sendable {
    let posted: PostedNotification
    let credentialScope: FailureGuard.CredentialScope
    let reason: FailureReason

    enum Effect: Sendable {
        case repeated
        case stale
        case doubted
        case removed
        case disabled
    }

    /// Applies ``VerdictRules``. Decrypts no rows, so that a damaged row can't make it fail.
    func takeEffect(_ sources: DeliverySources, at now: Timestamp) -> StoreCommand<Effect> {
        let device = posted.device
        let complaint: VerdictRules.Complaint = reason.verdict == .dead ? .dead : .doubtful
        return DeliveryStorage.noteFailure(of: posted.delivery).then { isNew in
            guard isNew else { return .done(.repeated) }
            return sources.versions(of: [device]).then { versions in
                DeliveryStorage.doubt(of: device).then { doubt in
                    let decision = VerdictRules.decide(
                        complaint, storedVersion: versions[device], notifiedVersion: posted.version, doubt: doubt, at: now)
                    switch decision {
                    case .ignore:
                        return .done(.stale)
                    case .unregister:
                        guard let source = sources[device.protocol] else { return .done(.stale) }
                        return source.endDevice(device.row, version: posted.version, at: now).map {
                            complaint == .dead ? .removed : .disabled
                        }
                    case .doubt(let doubt):
                        return .change([DeliveryStorage.setDoubt(doubt, of: device)], .doubted)
                    }
                }
            }
        }
    }
}
