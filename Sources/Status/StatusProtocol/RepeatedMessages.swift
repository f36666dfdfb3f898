import Core

/// Decodes the messages of a repeated field, in their order.
func elements<Message, Element>(
    _ count: Int, _ start: UnsafeMutablePointer<UnsafeMutablePointer<Message>?>?, _ decode: (Message) throws(ProtobufError) -> Element
) throws(ProtobufError) -> [Element] {
    guard let start else { return [] }
    var elements: [Element] = []
    elements.reserveCapacity(count)
    for case let message? in UnsafeBufferPointer(start: start, count: count) { elements.append(try decode(message.pointee)) }
    return elements
}
