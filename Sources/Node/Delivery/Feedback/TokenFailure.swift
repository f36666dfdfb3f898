import Core
import Storage
import Waku

/// A token that a notification did not reach, and whose it is.
struct TokenFailure: Sendable {
    let posted: PostedNotification
    let audience: FailureGuard.Audience
    let reason: FailureReason

    /// - Parameter delivery: what was posted.
    init(_ delivery: PostableDelivery, _ reason: FailureReason) {
        posted = delivery.posted
        audience = delivery.audience
        self.reason = reason
    }

    /// - Parameter address: of the device as it is registered now.
    init(_ posted: PostedNotification, _ address: DeviceAddress, _ failure: GorushFailure) {
        self.posted = posted
        audience = address.audience
        reason = FailureReason(platform: address.platform, error: failure.error)
    }

    enum Effect: Sendable {
        case repeated
        case stale
        case doubted
        case removed
        case disabled
    }

    /// Carries out what the rules say of it. Needs nothing to be opened, so that it can't fail for what a row holds.
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
