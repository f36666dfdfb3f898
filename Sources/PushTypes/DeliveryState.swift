/// What is known of a delivery that was started before.
public enum DeliveryState: Hashable, Sendable {
    /// In the outbox.
    case waiting
    /// gorush took it.
    case accepted
}
