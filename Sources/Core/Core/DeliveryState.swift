/// The state of a delivery that was started before.
public enum DeliveryState: Hashable, Sendable {
    /// In the outbox.
    case waiting
    /// Accepted by gorush.
    case accepted
}
