/// The state of a delivery that was started earlier.
public enum DeliveryState: Hashable, Sendable {
    /// In the outbox.
    case waiting
    /// Accepted by gorush.
    case accepted
}
