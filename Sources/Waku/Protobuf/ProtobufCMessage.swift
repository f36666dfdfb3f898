package import CPushMessages
package import ProtobufWire

package typealias ProtobufCUnpack<M> = (UnsafeMutablePointer<ProtobufCAllocator>?, Int, UnsafePointer<UInt8>?) -> UnsafeMutablePointer<M>?
package typealias ProtobufCFree<M> = (UnsafeMutablePointer<M>?, UnsafeMutablePointer<ProtobufCAllocator>?) -> Void
package typealias ProtobufCInitialize<M> = (UnsafeMutablePointer<M>?) -> Void
package typealias ProtobufCMeasure<M> = (UnsafePointer<M>?) -> Int
package typealias ProtobufCPack<M> = (UnsafePointer<M>?, UnsafeMutablePointer<UInt8>?) -> Int

/// A message that protoc-c made: its functions under one name, so that memory is handled in one place.
package protocol ProtobufCMessage {
    static var unpacking: ProtobufCUnpack<Self> { get }
    static var freeing: ProtobufCFree<Self> { get }
    static var initializing: ProtobufCInitialize<Self> { get }
    static var measuring: ProtobufCMeasure<Self> { get }
    static var packing: ProtobufCPack<Self> { get }
    init()
}

extension ProtobufCMessage {
    /// Lends the message in C; what is to be kept must be copied. Counts must have been checked by `ProtobufScan`.
    package static func withUnpacked<R>(
        _ bytes: [UInt8], _ body: (UnsafeMutablePointer<Self>) throws(ProtobufError) -> R
    ) throws(ProtobufError) -> R {
        guard let message = unpacking(nil, bytes.count, bytes) else { throw .malformed }
        defer { freeing(message, nil) }
        return try body(message)
    }

    /// An initialized message that `fill` completes from memory of the arena, encoded.
    package static func packed(_ fill: (inout Self, ProtobufArena) -> Void) -> [UInt8] {
        let arena = ProtobufArena()
        var message = Self()
        initializing(&message)
        return withExtendedLifetime(arena) {
            fill(&message, arena)
            return [UInt8](unsafeUninitializedCapacity: measuring(&message)) { buffer, initialized in
                initialized = packing(&message, buffer.baseAddress)
            }
        }
    }
}

extension ProtobufCBinaryData {
    package var bytes: [UInt8] {
        Array(UnsafeBufferPointer(start: data, count: len))
    }

    /// The bytes of a string, embedded NULs and all.
    ///
    /// - Throws: `ProtobufError.notUTF8`
    package func utf8() throws(ProtobufError) -> [UInt8] {
        let bytes = bytes
        guard String(validating: bytes, as: UTF8.self) != nil else { throw .notUTF8 }
        return bytes
    }

    /// - Throws: `ProtobufError.notUTF8`
    package func string() throws(ProtobufError) -> String {
        guard let string = String(validating: UnsafeBufferPointer(start: data, count: len), as: UTF8.self) else { throw .notUTF8 }
        return string
    }
}

/// Copies of a repeated bytes field.
package func byteLists(_ count: Int, _ start: UnsafeMutablePointer<ProtobufCBinaryData>?) -> [[UInt8]] {
    UnsafeBufferPointer(start: start, count: start == nil ? 0 : count).map(\.bytes)
}

/// Memory that a message in C points to while it is packed; freed together.
package final class ProtobufArena {
    private var blocks: [UnsafeMutableRawPointer] = []

    deinit {
        for block in blocks { block.deallocate() }
    }

    package func data(_ bytes: some Collection<UInt8>) -> ProtobufCBinaryData {
        let copy = allocate(UInt8.self, bytes.count)
        _ = copy.initialize(from: bytes)
        return ProtobufCBinaryData(len: copy.count, data: copy.baseAddress)
    }

    package func data(_ string: String) -> ProtobufCBinaryData {
        data(string.utf8)
    }

    /// A repeated bytes field.
    package func list(_ items: [[UInt8]]) -> UnsafeMutablePointer<ProtobufCBinaryData>? {
        let array = allocate(ProtobufCBinaryData.self, items.count)
        for (index, item) in items.enumerated() { array.initializeElement(at: index, to: data(item)) }
        return array.baseAddress
    }

    /// A repeated message field: pointers to messages, each initialized and then filled.
    package func messages<Item, M: ProtobufCMessage>(
        _ items: [Item], _ fill: (Item, inout M) -> Void
    ) -> UnsafeMutablePointer<UnsafeMutablePointer<M>?>? {
        let messages = allocate(M.self, items.count)
        let pointers = allocate(UnsafeMutablePointer<M>?.self, items.count)
        for (index, item) in items.enumerated() {
            var message = M()
            M.initializing(&message)
            fill(item, &message)
            messages.initializeElement(at: index, to: message)
            pointers.initializeElement(at: index, to: messages.baseAddress.map { $0 + index })
        }
        return pointers.baseAddress
    }

    private func allocate<T>(_ type: T.Type, _ count: Int) -> UnsafeMutableBufferPointer<T> {
        let buffer = UnsafeMutableBufferPointer<T>.allocate(capacity: count)
        if let start = buffer.baseAddress { blocks.append(UnsafeMutableRawPointer(start)) }
        return buffer
    }
}
